import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Tests run on the packages' source, or with SLUICE_TEST=built on what users would install.
const subject = process.env.SLUICE_TEST === 'built' ? 'built' : 'source'
// These conditions reach Node's own require too, so 'import' must not be among them.
const conditions = subject === 'built' ? ['node'] : ['@sluice/source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['**/*.test.ts'],
    // Many tests start servers and measure deadlines: more of them at once than cores would make them fail by turns.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // scripts/test-report.js adds these up.
    reporters: [
      'default',
      ['json', { outputFile: fileURLToPath(new URL(`../.tmp/reports/${subject}.json`, import.meta.url)) }],
    ],
  },
})
