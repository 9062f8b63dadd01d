import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  list,
  perHour,
  perMinute,
  SluiceError,
  type Store,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import type { Scenario } from './compared.js'

/** Long, as Redis has a clock of its own. */
const WINDOW = { limit: 3, window: '1d' } as const

export const SCENARIOS: readonly Scenario<Limiter<string>>[] = [
  scenario('exact log', (store) => createLimiter({ store, name: 'log', ...WINDOW })),
  scenario('fixed window', (store) => createLimiter({ store, name: 'fixed', limits: [fixedWindow(WINDOW)] })),
  scenario('month', (store) =>
    createLimiter({ store, name: 'month', limits: [fixedWindow({ limit: 3, window: 'month' })] }),
  ),
  scenario('spread', (store) =>
    createLimiter({ store, name: 'spread', limits: [fixedWindow({ ...WINDOW, spread: '10s' })] }),
  ),
  scenario('sliding window', (store) => createLimiter({ store, name: 'sliding', limits: [slidingWindow(WINDOW)] })),
  scenario('gcra', (store) => createLimiter({ store, name: 'gcra', limits: [gcra({ ...WINDOW, burst: 3 })] })),
  scenario('token bucket', (store) =>
    createLimiter({ store, name: 'bucket', limits: [tokenBucket({ capacity: 3, refill: 1, every: '1d' })] }),
  ),
  scenario('queueing bucket', (store) =>
    createLimiter({ store, name: 'queue', limits: [leakyBucket({ capacity: 3, leak: 1, every: '1d', queue: true })] }),
  ),
  scenario('permits', (store) => createLimiter({ store, name: 'permits', limits: [concurrency({ limit: 3 })] })),
  scenario('two limits of one log', (store) =>
    createLimiter({ store, name: 'two', limits: [perMinute(3), perHour(20)] }),
  ),
  scenario('two limits', (store) =>
    createLimiter({ store, name: 'mixed', limits: [fixedWindow(WINDOW), gcra(WINDOW)] }),
  ),
  scenario('a limit by a function', (store) =>
    createLimiter<string>({ store, name: 'function', limit: () => 3, window: '1m' }),
  ),
  scenario('tiers', (store) =>
    createLimiter<string>({
      store,
      name: 'tiers',
      tiers: { free: [perMinute(3)], paid: [perMinute(9)] },
      tier: () => 'free',
    }),
  ),
  scenario('reserve', (store) =>
    createLimiter<string>({ store, name: 'reserve', limits: [perMinute(4, { reserve: { 1: 1 } })] }),
  ),
  scenario('charged refusals', (store) => createLimiter({ store, name: 'charged', ...WINDOW, onDeny: 'charge' })),
  scenario('ban', (store) =>
    createLimiter({ store, name: 'ban', ...WINDOW, ban: { after: 2, within: '1m', for: ['1h'] } }),
  ),
  scenario('lists', (store) =>
    createLimiter({
      store,
      name: 'lists',
      ...WINDOW,
      allow: list({ key: ['listed'] }),
      deny: list({ key: ['denied'] }),
    }),
  ),
  scenario('kept charges', (store) => createLimiter({ store, name: 'kept', ...WINDOW, charges: { keep: '1h' } })),
  {
    name: 'units',
    without: undefined,
    make: (store) =>
      createLimiter({
        store,
        name: 'units',
        limits: [
          tokenBucket({ capacity: 30, refill: 30, every: '1d', unit: 'tokens', estimate: 'cap', name: 'tokens' }),
          perMinute(4),
        ],
      }),
    use: async (limiter, note) => {
      for (let i = 0; i < 5; i++) {
        const verdict = await limiter.consume('a', { cost: { tokens: 8 } })
        note(textOf(verdict))
        if (i === 0) note(`settled ${await verdict.settle({ tokens: 3 })}`)
        if (i === 1) note(`metered ${await verdict.meter('tokens').add(9)}`)
      }
      note(textOf(await limiter.consume('b')))
    },
  },
]

/** Requests until they are refused and after, and what is done with their verdicts. */
function scenario(name: string, make: (store: Store) => Limiter<string>): Scenario<Limiter<string>> {
  return { name, make, use: useAll, without: undefined }
}

async function useAll(limiter: Limiter<string>, note: (decided: string) => void): Promise<void> {
  const verdicts: Verdict[] = []
  for (let i = 0; i < 5; i++) {
    const verdict = await limiter.consume('a')
    verdicts.push(verdict)
    note(textOf(verdict))
  }
  note(textOf(await limiter.peek('a')))
  note(`refunded ${await limiter.refund('a', verdicts[0] as Verdict)}`)
  note(textOf(await limiter.consume('a', { cost: 1 })))
  note(`settled ${await (verdicts[1] as Verdict).settle(0)}`)
  note(textOf(await limiter.consume('a')))
  note(textOf(await limiter.consume('b', { cost: 4 })))
  // A wait for permits would turn the event loop: the test runner shares the prototype.
  if (limiter.limits.every(({ algorithm }) => algorithm !== 'concurrency')) {
    note(await limiter.acquire('a', { maxWait: 1 }).then(textOf, tooLong))
  }
  await limiter.block('c', { for: '1h', reason: 'spam' })
  note(textOf(await limiter.consume('c')))
  await limiter.unblock('c')
  note(textOf(await limiter.consume('c')))
  for (const key of ['listed', 'denied']) note(textOf(await limiter.consume(key)))
  await limiter.reset('a')
  note(textOf(await limiter.consume('a')))
}

/** A wait that is too long is a decision; anything else is not. */
function tooLong(error: unknown): string {
  if (error instanceof SluiceError && error.code === 'WAIT_EXCEEDED') return error.code
  throw error
}

function textOf(verdict: Verdict): string {
  const { allowed, reason, remaining, retryAfterMs, resetAfterMs, delayMs, cost, kind, tier, priority, limits } =
    verdict
  const own = [allowed, reason, remaining, retryAfterMs, resetAfterMs, delayMs, cost, kind, tier, priority]
  const ofLimits = limits.map(({ name, allowed, remaining, retryAfterMs }) =>
    [name, allowed, remaining, retryAfterMs].join(' '),
  )
  return [...own, verdict.block?.reason, verdict.ban?.rung, verdict.list?.effect, ...ofLimits].join(' | ')
}
