import { appendFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Lane } from './lane.js'
import { allMutants } from './mutants.js'

/** The share to try, where `1/2` is the first half, and texts that the names of the mutants must contain. */
const [share = '1/1', ...wanted] = JSON.parse(process.env.SLUICE_MUTANTS ?? '[]') as string[]
const [part, parts] = share.split('/').map(Number) as [number, number]

const report = process.env.SLUICE_MUTANTS_REPORT ?? '/dev/stdout'

// `npm run mutate` starts this in two processes, and reads their reports: a line for each mutant, once it was tried.
test('mutants are tried', { timeout: 6 * 3_600_000 }, async () => {
  const mutants = allMutants().filter(({ id }) => wanted.every((text) => id.includes(text)))
  const lane = await Lane.open()
  let tried = 0
  try {
    for (const [i, each] of mutants.entries()) {
      if (i % parts !== part - 1) continue
      const { mutant, ...outcome } = await lane.tryOn(each)
      const { source: _, ...shown } = mutant
      appendFileSync(report, `${JSON.stringify({ ...shown, ...outcome })}\n`)
      tried++
    }
  } finally {
    await lane.close()
  }
  expect(tried).toBeGreaterThanOrEqual(Math.floor(mutants.length / parts))
})
