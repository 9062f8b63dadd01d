// Deep: takes minutes.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { differencesFrom } from '../../support/oracle/periods.js'

const HOUR_MS = 3_600_000
/** One hour of so many is tried outside of the long run. */
const EVERY = byEffort({ usual: 97, full: 1 })

const oracle = join(import.meta.dirname, '../../support/oracle/periods.py')
const byPython = async (mode: string) => {
  const { stdout } = await promisify(execFile)('python3', ['-B', oracle, mode], { maxBuffer: 1e8 })
  return stdout
}
const zones: Record<string, Record<string, number[]>> = JSON.parse(await byPython('full'))

/** Hours of ten years, with the first and the last ms of each period. */
function* instantsAround(starts: readonly number[]): Generator<number> {
  let next = 0
  const last = Date.UTC(2019, 11, 30)
  for (let hour = Date.UTC(2010, 0, 2); hour < last; hour += EVERY * HOUR_MS) {
    for (; (starts[next] as number) <= hour + HOUR_MS && (starts[next] as number) < last; next++) {
      const start = starts[next] as number
      // A date that did not happen starts with the next one.
      if (start > hour && start !== starts[next - 1]) yield* [start - 1, start]
    }
    yield hour
  }
}

for (const [zone, cases] of Object.entries(zones)) {
  test(`windows in ${zone} are the periods of zoneinfo at every hour of ten years`, async () => {
    for (const [of, seconds] of Object.entries(cases)) {
      const starts = seconds.map((second) => second * 1000)
      const sorted = [...new Set(instantsAround(starts))].sort((a, b) => a - b)
      expect(await differencesFrom(zone, of, starts, sorted), `${zone} ${of}`).toEqual([])
    }
  }, 600_000)
}

test('the instants of the usual run are those of zoneinfo', async () => {
  expect(await byPython('slice')).toBe(await readFile(oracle.replace('.py', '.json'), 'utf8'))
})
