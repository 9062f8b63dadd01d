import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Lane, type Outcome } from './lane.js'
import { allMutants } from './mutants.js'

/** The share to try, where `1/2` is the first half, and texts that the names of the mutants must contain. */
const [share = '1/1', ...wanted] = JSON.parse(process.env.SLUICE_MUTANTS ?? '[]') as string[]
const [part, parts] = share.split('/').map(Number) as [number, number]

// `npm run mutate` starts this in two processes, and reads their reports.
test('mutants are tried', { timeout: 3_600_000 }, async () => {
  const mutants = allMutants().filter(({ id }) => wanted.every((text) => id.includes(text)))
  const lane = await Lane.open()
  const outcomes: Outcome[] = []
  try {
    for (const [i, mutant] of mutants.entries()) if (i % parts === part - 1) outcomes.push(await lane.tryOn(mutant))
  } finally {
    await lane.close()
  }
  expect(outcomes.length).toBeGreaterThanOrEqual(Math.floor(mutants.length / parts))
  const report = outcomes.map(({ mutant: { source: _, ...mutant }, ...outcome }) => ({ ...mutant, ...outcome }))
  writeFileSync(process.env.SLUICE_MUTANTS_REPORT ?? '/dev/stdout', JSON.stringify(report))
})
