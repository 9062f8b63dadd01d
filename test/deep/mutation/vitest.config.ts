import { defineConfig } from 'vitest/config'

const conditions = ['@sluice/source', 'node']

// All mutants: `npm run mutate`. `npm test` tries a sample of them.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { include: ['all.ts'], reporters: ['dot'] },
})
