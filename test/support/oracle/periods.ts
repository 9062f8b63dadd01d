import { fixedWindow, type Limit, memoryStore } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'

const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const

/** The limit of a case of periods.py, such as `month:31`. */
function limitOfCase(timeZone: string, of: string, limit: number): Limit<string> {
  const [window, first] = of.split(':') as ['day' | 'week' | 'month' | 'year', string]
  const startsOn = window === 'week' ? WEEKDAYS[Number(first)] : window === 'month' ? Number(first) : undefined
  return fixedWindow({ limit, window, timeZone, ...(startsOn !== undefined && { startsOn }) })
}

/**
 * Decides at each instant in ascending order, in ms, and returns what differs from the oracle: the end of the period, or the
 * units left of it. `starts`: the first instants of consecutive periods that contain all instants, in ms.
 */
export async function differencesFrom(
  timeZone: string,
  of: string,
  starts: readonly number[],
  instants: Iterable<number>,
): Promise<readonly object[]> {
  let now = 0
  const limit = 1_000_000
  const limiter = createLimiter({
    store: memoryStore({ clock: () => now }),
    limits: [limitOfCase(timeZone, of, limit)],
  })
  const found: object[] = []
  let [period, used] = [-1, 0]
  for (now of instants) {
    let next = Math.max(0, period)
    while ((starts[next + 1] as number) <= now) next++
    used = next === period ? used + 1 : 1
    period = next
    const { resetAfterMs, remaining, limits } = await limiter.consume('ann')
    const end = starts[period + 1] as number
    const expected = [end, limit - used, end - (starts[period] as number)]
    const got = [now + resetAfterMs, remaining, limits[0]?.windowMs]
    if (got.every((value, i) => value === expected[i])) continue
    found.push({ timeZone, of, at: new Date(now).toISOString(), expected, got })
    if (found.length > 5) break
  }
  return found
}
