import { defineConfig } from 'vitest/config'

// Tests run on the packages' source, or with SLUICE_TEST=built on what users would install.
const conditions = process.env.SLUICE_TEST === 'built' ? [] : ['@sluice/source']

export default defineConfig({
  resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] },
  ssr: { resolve: { conditions: [...conditions, 'node', 'import', 'module', 'default'] } },
  test: {
    include: ['**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
