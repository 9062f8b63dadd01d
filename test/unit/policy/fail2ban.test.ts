import { readFileSync } from 'node:fs'
import { createLimiter, memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'

/** The options of a fail2ban jail about ban times; all but the first begin with `bantime.` there. */
interface Jail {
  /** All in seconds. */
  readonly bantime: number
  readonly maxtime: number
  readonly factor: number
  readonly multipliers: readonly number[]
  /** Whether `formula` is the one with `math.exp` of jail.conf, instead of the default. */
  readonly isExponential: boolean
}

/** The ban time of fail2ban after so many bans, in seconds: `bantime.increment`, as jail.conf documents it. */
function banTime({ bantime, maxtime, factor, multipliers, isExponential }: Jail, bans: number): number {
  // A client that was never banned gets the plain ban time.
  if (bans === 0) return bantime
  const multiplier = multipliers[Math.min(bans, multipliers.length - 1)]
  if (multiplier !== undefined) return Math.min(maxtime, bantime * factor * multiplier)
  const grown = isExponential
    ? (bantime * Math.exp((bans + 1) * factor)) / Math.exp(factor)
    : bantime * 2 ** Math.min(bans, 20) * factor
  return Math.min(maxtime, Math.max(bantime, grown))
}

const SECONDS = { m: 60, h: 3600, d: 86_400 }
const seconds = (text: string) => Number.parseInt(text, 10) * SECONDS[text.at(-1) as keyof typeof SECONDS]

function jailOf(text: string): Jail {
  const options = Object.fromEntries([...text.matchAll(/`(\w+) = ([^`]+)`/g)].map(([, name, value]) => [name, value]))
  return {
    bantime: seconds(options.bantime ?? ''),
    maxtime: options.maxtime === undefined ? Number.POSITIVE_INFINITY : seconds(options.maxtime),
    factor: Number(options.factor ?? 1),
    multipliers: options.multipliers?.split(' ').map(Number) ?? [],
    isExponential: text.includes('math.exp'),
  }
}

const page = readFileSync(new URL('../../../docs/migrating-from-others.md', import.meta.url), 'utf8')
const rows = [...page.matchAll(/^\| (`bantime = .+) \| `(.+)` \| ([\d, ]+) \|$/gm)]

test('migrating-from-others.md has six rows of ladders', () => expect(rows).toHaveLength(6))

test.each(rows.map(([, jail = '', ladder = '', bans = '']) => ({ jail, ladder, bans: bans.split(', ').map(Number) })))(
  'the ladder $ladder bans as long as the jail $jail',
  async ({ jail, ladder, bans }) => {
    let now = 1_800_000_000_000
    const store = memoryStore({ clock: () => now })
    const rungs = new Function(`return ${ladder}`)()
    const limiter = createLimiter({ store, limit: 1, window: '1m', ban: { after: 1, within: '1m', for: rungs } })
    // Beyond the bans in the table, the last rung repeats.
    for (let n = 0; n < 30; n++) {
      const { until = 0 } = (await limiter.strike('guesser')) ?? {}
      const theirs = banTime(jailOf(jail), n)
      const ours = (until - now) / 1000
      expect(ours, `ban ${n + 1}`).toBeLessThanOrEqual(theirs)
      // Each ban computed from the one before is a whole number of ms.
      expect(ours, `ban ${n + 1}`).toBeGreaterThan(theirs * 0.999_999 - 0.001)
      if (n < bans.length) expect(bans[n], `ban ${n + 1}`).toBe(Math.floor(ours))
      now = until
    }
    await store.close()
  },
)
