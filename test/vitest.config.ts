import { defineConfig } from 'vitest/config'

// Tests run on the packages' source, or with SLUICE_TEST=built on what users would install.
// These conditions reach Node's own require too, so 'import' must not be among them.
const conditions = process.env.SLUICE_TEST === 'built' ? ['node'] : ['@sluice/source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
