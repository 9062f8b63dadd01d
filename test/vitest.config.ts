import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'

// Tests run on the packages' source, or with SLUICE_TEST=built on what users would install.
const subject = process.env.SLUICE_TEST === 'built' ? 'built' : 'source'
// These conditions reach Node's own require too, so 'import' must not be among them.
const conditions = subject === 'built' ? ['node'] : ['@sluice/source', 'node']

// These look for mistakes in what is written, at length, and find in what is built from it what they find there.
const atLength = ['bench', 'build', 'fuzz', 'interleavings', 'mutation']

// Tests of the tools that build the packages.
const TOOLS = '../tools/*/test/**/*.test.ts'

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['**/*.test.ts', TOOLS],
    exclude: [
      ...configDefaults.exclude,
      ...(subject === 'built' ? [TOOLS, ...atLength.map((folder) => `${folder}/**`)] : []),
    ],
    // Most tests wait for most of their time, so that two cores do for three; more at once would make those fail by turns that
    // measure deadlines.
    maxWorkers: 3,
    // Only what hangs takes so long, also on a machine that does many other things.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    // Packages as built are loaded by Node itself, as a user's are.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // scripts/test-report.js adds these up.
    reporters: [
      'default',
      ['json', { outputFile: fileURLToPath(new URL(`../.tmp/reports/${subject}.json`, import.meta.url)) }],
    ],
  },
})
