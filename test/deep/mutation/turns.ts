import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, type Limit, redisStore, type Store, slidingLog, tokenBucket } from '@sluice/core'
import {
  type Cell,
  CHARGE,
  CONSUME,
  PEEK,
  type Plan,
  type StoreRequest,
  type StoreResult,
  WAITERS,
  type WaitingTurn,
} from '@sluice/core/store'
import { oneScriptFor, TURNS } from '../../../packages/core/src/redis/scripts/script.js'
import { insist } from '../../support/outages.js'
import type { Check, Venue } from './check.js'

/** A report of waiters by a process, with the time since their arrival and the remaining life of the report, in ms. */
interface Entry {
  readonly process: string
  readonly class: number
  readonly aheadMs: number
  readonly leftMs: number
}

const [ann, bob, cem] = ['process-0001', 'process-0002', 'process-0003']
const TTL_MS = 60_000
const ENTRY = 34
const MARKER = 'sluice:v1:blocked:waiting'
const BLOCK_MARKER = 'sluice:v1:blocked'
const BLOCK = 'sluice:v1:{key=k}:turns:block'
/** The time after which a store that found no waiters looks again. */
const UNSEEN_MS = 60

const entry = (process: string, of: number, aheadMs: number, leftMs = 50_000): Entry => ({
  process,
  class: of,
  aheadMs,
  leftMs,
})

async function writeEntries(venue: Venue, key: string, entries: readonly Entry[]): Promise<void> {
  const now = await venue.redis.now()
  const record = Buffer.concat(
    entries.map((one) => {
      const bytes = Buffer.alloc(ENTRY)
      bytes.write(one.process)
      bytes.writeDoubleBE(one.class, 12)
      bytes.writeDoubleBE(now - one.aheadMs, 20)
      bytes.writeUIntBE(now + one.leftMs, 28, 6)
      return bytes
    }),
  )
  await venue.redis.call('SET', key, record as unknown as string, 'PX', 3_600_000)
  await venue.redis.call('SET', MARKER, '', 'PX', 3_600_000)
}

/** Rounds to seconds, as time passes during the reading. */
async function readEntries(venue: Venue, key: string): Promise<string[]> {
  const now = await venue.redis.now()
  const record = await venue.redis.bytes(key)
  const found: string[] = []
  for (let at = 0; record && at < record.length; at += ENTRY) {
    const aheadMs = now - record.readDoubleBE(at + 20)
    const leftMs = record.readUIntBE(at + 28, 6) - now
    found.push(
      textOf({ process: record.toString('latin1', at, at + 12), class: record.readDoubleBE(at + 12), aheadMs, leftMs }),
    )
  }
  const leftMs = Number(await venue.redis.call('PTTL', key))
  if (record) found.push(`expires in ${seconds(leftMs)}`)
  return found
}

const seconds = (ms: number) => Math.round(ms / 5000) * 5
const textOf = (one: Entry) => `${one.process} ${one.class} ${seconds(one.aheadMs)} ${seconds(one.leftMs)}`

const storeOn = ({ redis, clock }: Venue, hasClock = false): Store =>
  insist(redisStore(redis.client(), { timeout: 5000, ...(hasClock && { clock: clock.read }) }))

/** A store, a request for these limits, and the keys of the records of their cells. */
async function planOf(
  limits: readonly Limit<string>[],
  venue: Venue,
  hasClock = false,
): Promise<{ store: Store; request: StoreRequest; keys: string[] }> {
  const store = storeOn(venue, hasClock)
  let request: StoreRequest | undefined
  const spy = {
    ...store,
    decide: (given: StoreRequest) => {
      request = given
      return store.decide(given)
    },
  } as Store
  const sharedTurns = { ttl: '1m' as const }
  await venue.redis.call('FLUSHALL')
  const limiter = createLimiter<string>({ name: 'turns', store: spy, sharedTurns, limits })
  await limiter.peek('k')
  // This store has just found no waiters; a new one has not.
  await store.close()
  const plan = (request as unknown as StoreRequest).plan
  return { store: storeOn(venue, hasClock), request: request as unknown as StoreRequest, keys: keysOf(plan) }
}

const keysOf = ({ cells }: Plan) => cells.map(({ id }) => `sluice:v1:{key=k}:turns:${id}:waiting`)

interface Case {
  readonly name: string
  readonly limits?: readonly Limit<string>[]
  /** The reports before the decision, by cell. */
  readonly reported?: readonly (readonly Entry[])[]
  /** The waiter that makes the request, and the cell of its queue; undefined if it does not wait. */
  readonly turn?: { readonly cell: number; readonly class: number; readonly aheadMs: number } | undefined
  readonly ifRefused?: readonly [number, number][]
  readonly ifAdmitted?: readonly [number, number][]
  readonly op?: typeof CONSUME | typeof PEEK | typeof CHARGE
  readonly cost?: number
  readonly reserve?: boolean
  /** Whether the identity is blocked. */
  readonly isBlocked?: boolean
  /** Whether the marker of waiters is lost, as by an eviction. */
  readonly isUnmarked?: boolean
  /** Whether decisions use the clock of the test, which differs far from that of Redis. */
  readonly hasClock?: boolean
  /** The expected outcome. */
  readonly allowed: boolean
  readonly behindMs?: number
  /** The expected record of each cell. */
  readonly leaves: readonly (readonly string[])[]
}

const log = slidingLog<string>({ limit: 3, window: '1h' })
const bucket = tokenBucket<string>({ capacity: 3, refill: 1, every: '1h' })
const permits = concurrency<string>({ limit: 3, ttl: '1h' })
const recordOf = (entries: readonly Entry[], leftMs: number) => [
  ...entries.map(textOf),
  `expires in ${seconds(leftMs)}`,
]
const own = (process: string, classes: readonly [number, number][]) =>
  classes.map(([of, aheadMs]) => entry(process, of, aheadMs, TTL_MS))

const before = [entry(bob, 5, 40_000)]
const CASES: readonly Case[] = [
  {
    name: 'without waiters a request that does not wait is admitted, and nothing is written',
    allowed: true,
    leaves: [[]],
  },
  {
    name: 'a waiter of any class is before a request that does not wait',
    reported: [[entry(bob, -1, -10_000)]],
    allowed: false,
    behindMs: 50_000,
    leaves: [recordOf([entry(bob, -1, -10_000)], 3_600_000)],
  },
  {
    name: 'a waiter of the same process is before a request that does not wait',
    reported: [[entry(ann, 0, 0)]],
    allowed: false,
    behindMs: 50_000,
    leaves: [recordOf([entry(ann, 0, 0)], 3_600_000)],
  },
  {
    name: 'a peek is refused behind a waiter, too',
    op: PEEK,
    reported: [before],
    allowed: false,
    behindMs: 50_000,
    leaves: [recordOf(before, 3_600_000)],
  },
  ...[2, 3].map(
    (cost): Case => ({
      name: `a request behind a waiter is not charged, at any cost: ${cost}`,
      cost,
      reported: [before],
      allowed: false,
      behindMs: 50_000,
      leaves: [recordOf(before, 3_600_000)],
    }),
  ),
  {
    name: 'a lapsed report does not count',
    reported: [[entry(bob, 5, 40_000, -5000)]],
    allowed: true,
    leaves: [recordOf([entry(bob, 5, 40_000, -5000)], 3_600_000)],
  },
  {
    name: 'the longest of several reports determines the time',
    reported: [[entry(bob, 5, 40_000, 20_000), entry(cem, 5, 40_000, 30_000), entry(bob, 6, 40_000, 10_000)]],
    allowed: false,
    behindMs: 30_000,
    leaves: [
      recordOf(
        [entry(bob, 5, 40_000, 20_000), entry(cem, 5, 40_000, 30_000), entry(bob, 6, 40_000, 10_000)],
        3_600_000,
      ),
    ],
  },
  {
    name: 'the reported time is at most what fits',
    reported: [[entry(bob, 5, 40_000, 500_000)]],
    allowed: false,
    behindMs: 65_535,
    leaves: [recordOf([entry(bob, 5, 40_000, 500_000)], 3_600_000)],
  },
  {
    name: 'an earlier class is before a waiter, and its report is stored beside the other',
    reported: [before],
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [
      [0, 10_000],
      [7, 5000],
    ],
    ifAdmitted: [[7, 5000]],
    allowed: false,
    behindMs: 50_000,
    leaves: [
      recordOf(
        [
          ...before,
          ...own(ann, [
            [0, 10_000],
            [7, 5000],
          ]),
        ],
        TTL_MS,
      ),
    ],
  },
  {
    name: 'the first waiter is reported, and the marker set',
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    cost: 4,
    allowed: false,
    leaves: [recordOf(own(ann, [[0, 10_000]]), TTL_MS)],
  },
  {
    name: 'a waiter of a later class is admitted, and its report follows',
    reported: [[entry(bob, 5, 10_000)]],
    turn: { cell: 0, class: 0, aheadMs: 40_000 },
    ifRefused: [
      [0, 40_000],
      [7, 5000],
    ],
    ifAdmitted: [[7, 5000]],
    allowed: true,
    leaves: [recordOf([entry(bob, 5, 10_000), ...own(ann, [[7, 5000]])], TTL_MS)],
  },
  {
    name: 'a waiter is not held up by its own class, however early',
    reported: [[entry(bob, 0, 40_000, 55_000), entry(cem, 0, 50_000, 20_000)]],
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    allowed: true,
    leaves: [recordOf([entry(bob, 0, 40_000, 55_000), entry(cem, 0, 50_000, 20_000)], 55_000)],
  },
  {
    name: 'a waiter is not held up by a class of the same instant',
    reported: [[entry(bob, 5, Number.POSITIVE_INFINITY)]],
    turn: { cell: 0, class: 0, aheadMs: Number.POSITIVE_INFINITY },
    ifAdmitted: [],
    allowed: true,
    leaves: [recordOf([entry(bob, 5, Number.POSITIVE_INFINITY)], 50_000)],
  },
  {
    name: 'a report replaces the earlier one of its process, and removes lapsed ones',
    reported: [[entry(ann, 9, 90_000), entry(bob, 1, 5000, -5000), entry(cem, 1, 5000, 20_000)]],
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    cost: 4,
    allowed: false,
    leaves: [recordOf([entry(cem, 1, 5000, 20_000), ...own(ann, [[0, 10_000]])], TTL_MS)],
  },
  {
    name: 'the last waiter leaves no record',
    reported: [[entry(ann, 0, 10_000)]],
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    allowed: true,
    leaves: [[]],
  },
  {
    name: 'a peek of a waiter reports nothing',
    op: PEEK,
    reported: [before],
    turn: { cell: 0, class: 0, aheadMs: 90_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    allowed: true,
    leaves: [recordOf(before, 3_600_000)],
  },
  {
    name: 'a refusal behind a waiter is not charged, where refusals are charged',
    op: CHARGE,
    reported: [before],
    limits: [log],
    allowed: false,
    behindMs: 50_000,
    leaves: [recordOf(before, 3_600_000)],
  },
  {
    name: 'a blocked waiter is still reported',
    limits: [log],
    isBlocked: true,
    turn: { cell: 0, class: 0, aheadMs: 10_000 },
    ifRefused: [[0, 10_000]],
    ifAdmitted: [],
    allowed: false,
    leaves: [recordOf(own(ann, [[0, 10_000]]), TTL_MS)],
  },
  ...[{ isUnmarked: true }, { hasClock: true }].map(
    (how): Case => ({
      name: `the report of another process remains: ${Object.keys(how)}`,
      ...how,
      reported: [before],
      turn: { cell: 0, class: 0, aheadMs: 10_000 },
      ifRefused: [[0, 10_000]],
      ifAdmitted: [],
      allowed: false,
      behindMs: 50_000,
      leaves: [recordOf([...before, ...own(ann, [[0, 10_000]])], TTL_MS)],
    }),
  ),
  ...[0, 1].map(
    (line): Case => ({
      name: `a waiter reads the records of all cells, and writes that of its queue: ${line}`,
      limits: [log, bucket],
      reported: [[entry(bob, 1, 1000)], [entry(cem, 1, 2000)]],
      turn: { cell: line, class: 0, aheadMs: 40_000 },
      ifRefused: [[0, 40_000]],
      ifAdmitted: [[3, 3000]],
      allowed: true,
      leaves: [
        line === 0
          ? recordOf([entry(bob, 1, 1000), ...own(ann, [[3, 3000]])], TTL_MS)
          : recordOf([entry(bob, 1, 1000)], 3_600_000),
        line === 1
          ? recordOf([entry(cem, 1, 2000), ...own(ann, [[3, 3000]])], TTL_MS)
          : recordOf([entry(cem, 1, 2000)], 3_600_000),
      ],
    }),
  ),
  ...[0, 1].map(
    (line): Case => ({
      name: `a waiter before it in the queue of any cell holds it up: ${line}`,
      limits: [log, bucket],
      reported: line === 0 ? [before, []] : [[], before],
      turn: { cell: -1, class: 0, aheadMs: 10_000 },
      ifRefused: [[0, 10_000]],
      ifAdmitted: [],
      allowed: false,
      behindMs: 50_000,
      leaves: line === 0 ? [recordOf(before, 3_600_000), []] : [[], recordOf(before, 3_600_000)],
    }),
  ),
  {
    name: 'a request behind a waiter is not charged on a limit with a reserve',
    limits: [slidingLog<string>({ limit: 3, window: '1h', reserve: 1 })],
    reported: [before],
    reserve: true,
    allowed: false,
    behindMs: 50_000,
    leaves: [recordOf(before, 3_600_000)],
  },
]

async function decideCase(venue: Venue, given: Case): Promise<string | undefined> {
  const { store, request, keys } = await planOf(given.limits ?? [permits], venue, given.hasClock)
  try {
    for (const [i, entries] of (given.reported ?? []).entries()) {
      if (entries.length > 0) await writeEntries(venue, keys[i] as string, entries)
    }
    if (given.isUnmarked) await venue.redis.call('DEL', MARKER)
    if (given.isBlocked) {
      await venue.redis.call('SET', BLOCK, `${(await venue.redis.now()) + 60_000} why`)
      await venue.redis.call('SET', BLOCK_MARKER, '1')
    }
    const at = performance.now()
    const classOf = ([headStartMs, aheadMs]: readonly [number, number]) => ({ headStartMs, since: at - aheadMs })
    const turn: WaitingTurn | undefined = given.turn && {
      process: ann,
      cell: given.turn.cell,
      class: classOf([given.turn.class, given.turn.aheadMs]),
      ifRefused: (given.ifRefused ?? []).map(classOf),
      ifAdmitted: (given.ifAdmitted ?? []).map(classOf),
    }
    const costs = request.plan.cells.map(() => given.cost ?? 1)
    const asked: StoreRequest = {
      ...request,
      op: given.op ?? CONSUME,
      costs,
      permitId: 'permit',
      fresh: true,
      ...(given.reserve && { needs: costs.map((cost) => cost + 1) }),
      ...(turn && { turn }),
    }
    const result = await store.decide(asked)
    const outcome = resultText(result, asked)
    const expected = { allowed: given.allowed, behindS: given.behindMs === undefined ? 0 : seconds(given.behindMs) }
    if (JSON.stringify(outcome) !== JSON.stringify(expected))
      return `${JSON.stringify(outcome)}, not ${JSON.stringify(expected)}`
    for (const [i, key] of keys.entries()) {
      const found = (await readEntries(venue, key)).join(', ')
      const then = (given.leaves[i] ?? []).join(', ')
      if (found !== then) return `the record of cell ${i}: ${found}, not ${then}`
    }
    await venue.redis.call('DEL', BLOCK, BLOCK_MARKER)
    const isReported = !given.isUnmarked && (given.reported ?? []).some((entries) => entries.length > 0)
    const isWritten = given.leaves.some((entries) => entries.length > 0)
    const markerMs = Number(await venue.redis.call('PTTL', MARKER))
    const markerS = isReported ? 3600 : isWritten ? TTL_MS / 1000 : 0
    if (Math.max(0, seconds(markerMs)) !== markerS) return `the marker ends in ${markerMs} ms`
    const left = await store.decide({ ...request, op: PEEK, fresh: true, turn: { ...SOMEONE } })
    const remaining = left.values[left.offset]
    const charged = given.allowed && asked.op !== PEEK ? 1 : 0
    return remaining === 3 - charged ? undefined : `${remaining} are left`
  } finally {
    await store.close()
  }
}

/** A waiter before all others. */
const SOMEONE: WaitingTurn = {
  process: 'process-0009',
  cell: -1,
  class: { headStartMs: 99, since: Number.NEGATIVE_INFINITY },
  ifRefused: [],
  ifAdmitted: [],
}

function resultText({ allowed, behindMs = 0 }: StoreResult, _asked: StoreRequest) {
  return { allowed, behindS: seconds(behindMs) }
}

/** Reports of processes outside of decisions. */
async function reportCase(venue: Venue): Promise<string | undefined> {
  const { store, request, keys } = await planOf([log, bucket], venue)
  const report = (process: string, cell: number, classes: readonly [number, number][]) =>
    store[WAITERS]?.report?.(
      request.plan,
      request.identities,
      { process, cell },
      classes.map(([headStartMs, aheadMs]) => ({ headStartMs, since: performance.now() - aheadMs })),
    )
  const read = async () => (await Promise.all(keys.map((key) => readEntries(venue, key)))).map((all) => all.join(', '))
  try {
    await report(ann, 0, [
      [1, 10_000],
      [0, 5000],
    ])
    await report(bob, 0, [[2, 20_000]])
    await report(cem, 1, [[2, 30_000]])
    await report(ann, 0, [[0, 5000]])
    const first = (await read()).join(' | ')
    const expected = [
      recordOf([...own(bob, [[2, 20_000]]), ...own(ann, [[0, 5000]])], TTL_MS),
      recordOf(own(cem, [[2, 30_000]]), TTL_MS),
    ]
    if (first !== expected.map((all) => all.join(', ')).join(' | ')) return first
    await report(bob, 0, [])
    await report(cem, 1, [])
    const second = (await read()).join(' | ')
    const then = `${recordOf(own(ann, [[0, 5000]]), TTL_MS).join(', ')} | `
    if (second !== then) return second
    await venue.redis.call('SET', keys[0] as string, 'not ours')
    await report(ann, 0, [[0, 5000]])
    const third = (await read())[0]
    if (third !== recordOf(own(ann, [[0, 5000]]), TTL_MS).join(', ')) return `${third}`
    await venue.redis.call('DEL', keys[0] as string)
    await venue.redis.call('RPUSH', keys[0] as string, 'not ours')
    await report(ann, 0, [[0, 5000]])
    const fourth = (await read())[0]
    return fourth === third ? undefined : `${fourth}`
  } finally {
    await store.close()
  }
}

/** The marker lives as long as the longest report, and reports end by the clock of the server. */
async function reportTimesCase(venue: Venue): Promise<string | undefined> {
  const { store, request, keys } = await planOf([bucket], venue)
  const report = (process: string) =>
    store[WAITERS]?.report?.(request.plan, request.identities, { process, cell: 0 }, [
      { headStartMs: 0, since: performance.now() },
    ])
  try {
    for (const leftMs of [undefined, 5000, 3_600_000]) {
      if (leftMs !== undefined) await venue.redis.call('SET', MARKER, '', 'PX', leftMs)
      await report(ann)
      const markerMs = Number(await venue.redis.call('PTTL', MARKER))
      if (seconds(markerMs) !== seconds(Math.max(TTL_MS, leftMs ?? 0))) return `the marker ends in ${markerMs} ms`
    }
    // At a moment where a wrong sum of seconds and their fraction differs clearly.
    let before = await venue.redis.now()
    for (; before % 1000 < 300 || before % 1000 > 700; before = await venue.redis.now()) await sleep(20)
    await report(bob)
    const after = await venue.redis.now()
    const record = await venue.redis.bytes(keys[0] as string)
    const reportedAt = (record?.readUIntBE(ENTRY + 28, 6) ?? 0) - TTL_MS
    return reportedAt >= before && reportedAt <= after + 1
      ? undefined
      : `${reportedAt} is not from ${before} to ${after}`
  } finally {
    await store.close()
  }
}

/** Reports of a decision use the clock of the server, whatever clock the decision uses. */
async function ownTimesCase(venue: Venue): Promise<string | undefined> {
  const { store, request, keys } = await planOf([permits], venue, true)
  try {
    let from = await venue.redis.now()
    for (; from % 1000 < 300 || from % 1000 > 700; from = await venue.redis.now()) await sleep(20)
    const own = { headStartMs: 0, since: performance.now() }
    const turn = { process: ann, cell: 0, class: own, ifRefused: [own], ifAdmitted: [] }
    await store.decide({ ...request, op: CONSUME, costs: [4], permitId: 'permit', fresh: true, turn })
    const to = await venue.redis.now()
    const record = await venue.redis.bytes(keys[0] as string)
    const reportedAt = (record?.readUIntBE(28, 6) ?? 0) - TTL_MS
    return reportedAt >= from && reportedAt <= to + 1 ? undefined : `${reportedAt} is not from ${from} to ${to}`
  } finally {
    await store.close()
  }
}

/** A batch in which a request begins to wait: later requests are behind it, each at its own position. */
async function amongCase(venue: Venue): Promise<string | undefined> {
  const { store, request } = await planOf([log], venue)
  const since = performance.now()
  const classes = [9, 5, 2].map((headStartMs) => ({ headStartMs, since }))
  const ask = (identity: string, cost: number, turn?: WaitingTurn) =>
    store.decide({
      ...request,
      identities: [`key=${identity}`],
      op: CONSUME,
      costs: [cost],
      fresh: true,
      ...(turn && { turn }),
    }) as Promise<StoreResult>
  const turn = (ifRefused: number, ifAdmitted: number): WaitingTurn => ({
    process: ann,
    cell: 0,
    class: { headStartMs: 9, since },
    ifRefused: classes.slice(0, ifRefused),
    ifAdmitted: classes.slice(0, ifAdmitted),
  })
  try {
    const results = await Promise.all([
      ask('other', 1),
      ask('k', 4, turn(3, 2)),
      ask('k', 4, turn(2, 3)),
      ask('k', 1),
      ask('other', 2),
      ask('other', 1),
    ])
    const outcomes = results.map(
      ({ allowed, behindMs = 0 }) => `${allowed ? 'admitted' : 'refused'} ${seconds(behindMs)}`,
    )
    const expected = ['admitted 0', 'refused 0', 'refused 0', 'refused 60', 'admitted 0', 'refused 0']
    if (outcomes.join() !== expected.join()) return outcomes.join()
    // The store does not assume that there are no waiters at all.
    return (await isLooking(venue, () => ask('third', 1))) ? undefined : 'the next does not look'
  } finally {
    await store.close()
  }
}

/** A refusal behind a waiter is not by its limit, and so it is no strike. */
async function strikeCase(venue: Venue): Promise<string | undefined> {
  const store = storeOn(venue)
  try {
    await venue.redis.call('FLUSHALL')
    const ban = { by: 'key', after: 1, within: '1h', for: ['2h'] } as const
    const limits = [slidingLog<string>({ limit: 1, window: '1h' })]
    const limiter = createLimiter<string>({ name: 'turns', store, sharedTurns: true, limits, ban })
    await limiter.consume('k')
    const { plan } = await firstRequest(limits)
    const key = keysOf(plan)[0] as string
    await writeEntries(venue, key, before)
    await sleep(UNSEEN_MS)
    const behind = await limiter.consume('k')
    if (behind.reason !== 'limited') return `${behind.reason} behind one that waits`
    await venue.redis.call('DEL', key, MARKER)
    const struck = await limiter.consume('k')
    return struck.reason === 'banned' ? undefined : `${struck.reason} where none waits`
  } finally {
    await store.close()
  }
}

/** The marker lives at least as long as its last setting. */
async function markCase({ redis }: Venue): Promise<string | undefined> {
  for (const [ms, leftMs] of [
    [TTL_MS, TTL_MS],
    [5000, TTL_MS],
    [2 * TTL_MS, 2 * TTL_MS],
  ]) {
    await redis.runNamed('mark-waiting', [MARKER], [ms as number])
    const markerMs = Number(await redis.call('PTTL', MARKER))
    if (seconds(markerMs) !== seconds(leftMs as number)) return `set for ${ms} ms it ends in ${markerMs} ms`
  }
  return undefined
}

/** Whether a decision is made by a script that looks for waiters. */
async function isLooking({ redis: { ran } }: Venue, ask: () => StoreResult | Promise<StoreResult>): Promise<boolean> {
  const others = [...ran]
  ran.clear()
  await ask()
  const found = [...ran].some((name) => name.split(' ').includes('turns'))
  // The checks of a mutant are selected by these.
  for (const name of others) ran.add(name)
  return found
}

/** A store remembers for 50 ms that there are no waiters, for one key or for any; it does not remember that there are some. */
async function rememberCase(venue: Venue): Promise<string | undefined> {
  const { store, request, keys } = await planOf([permits], venue)
  const ask = (cost: number, turn?: WaitingTurn, identities = request.identities) =>
    store.decide({
      ...request,
      identities,
      op: CONSUME,
      costs: [cost],
      permitId: 'permit',
      fresh: true,
      ...(turn && { turn }),
    })
  const since = performance.now()
  const own = { headStartMs: 0, since }
  const turn = { process: ann, cell: 0, class: own, ifRefused: [own], ifAdmitted: [] }
  const found: string[] = []
  const look = async (identity = 'k') => {
    const looks = await isLooking(venue, () => ask(1, undefined, [`key=${identity}`]))
    found.push(looks ? 'looks' : 'does not')
  }
  try {
    await ask(4, turn)
    await look()
    await look()
    // There are no waiters for this key, but others may exist.
    await look('other')
    await look('other')
    await look('third')
    await ask(1, turn)
    await look()
    await sleep(UNSEEN_MS)
    await writeEntries(venue, keys[0] as string, before)
    await look()
    await venue.redis.call('DEL', keys[0] as string, MARKER)
    await look()
    await look()
    await look('fourth')
    const expected = [
      'looks',
      'looks',
      'looks',
      'does not',
      'looks',
      'does not',
      'looks',
      'looks',
      'does not',
      'does not',
    ]
    return found.join() === expected.join() ? undefined : found.join()
  } finally {
    await store.close()
  }
}

/** Many keys in one batch: one script decides all, each behind its own waiters. */
async function batchCase(
  venue: Venue,
  limits: readonly Limit<string>[],
  run: number,
  waitedFor: readonly string[] = ['b', 'd'],
): Promise<string | undefined> {
  const store = storeOn(venue)
  try {
    await venue.redis.call('FLUSHALL')
    const limiter = createLimiter<string>({ name: 'turns', store, sharedTurns: true, limits })
    const { plan } = await firstRequest(limits)
    const keyOf = (name: string) => `sluice:v1:{key=${name}}:turns:${plan.cells.at(-1)?.id}:waiting`
    for (const name of waitedFor) await writeEntries(venue, keyOf(name), before)
    const seen: number[] = []
    venue.redis.onRun = (keys) => seen.push(keys.length)
    const names = ['a', 'b', 'c', 'd', 'e']
    const verdicts = await Promise.all(names.map((name) => limiter.consume(name)))
    const refused = names.filter((_, i) => !verdicts[i]?.allowed)
    if (refused.join() !== waitedFor.join()) return `${refused} are refused`
    return seen.join() === String(run) ? undefined : `runs of ${seen.join(', ')} keys`
  } finally {
    venue.redis.onRun = undefined
    await store.close()
  }
}

async function firstRequest(limits: readonly Limit<string>[]): Promise<StoreRequest> {
  let request: StoreRequest | undefined
  const store = {
    decide: (given: StoreRequest) => {
      request = given
      return Promise.reject(new Error('this store only records the request'))
    },
  } as unknown as Store
  await createLimiter<string>({ name: 'turns', store, sharedTurns: true, limits })
    .peek('k')
    .catch(() => {})
  return request as unknown as StoreRequest
}

/** The last byte of a reply says whether requests may wait for other cells: in a cluster, whose scripts get no marker, always. */
async function maybeWaitingCase(venue: Venue): Promise<string | undefined> {
  const { store, request, keys } = await planOf([bucket], venue)
  const [cell] = request.plan.cells as [Cell]
  const { source } = oneScriptFor(cell, TURNS)
  const client = venue.redis.client() as unknown as {
    callBuffer(command: string, args: readonly string[]): Promise<Buffer>
  }
  const lastByte = async (of: readonly string[]) => {
    const all = [BLOCK_MARKER, `sluice:v1:{key=k}:turns:${cell.id}`, keys[0] as string, ...of]
    return (await client.callBuffer('EVAL', [source, String(all.length), ...all, '1', ''])).at(-1)
  }
  try {
    const found = `${await lastByte([])} ${await lastByte([MARKER])}`
    return found === '1 0' ? undefined : `${found}, not 1 0`
  } finally {
    await store.close()
  }
}

export const turnChecks: readonly Check[] = [
  ...CASES.map((given): Check => ({ name: `turns: ${given.name}`, run: (venue) => decideCase(venue, given) })),
  { name: 'turns: reports of processes', run: reportCase },
  { name: 'turns: the life of reports', run: reportTimesCase },
  { name: 'turns: the marker of a cluster', run: markCase },
  { name: 'turns: whether requests may wait elsewhere', run: maybeWaitingCase },
  { name: 'turns: the life of reports by the clock of Redis', run: ownTimesCase },
  { name: 'turns: the memory of a store', run: rememberCase },
  { name: 'turns: a request that begins to wait in a batch', run: amongCase },
  { name: 'turns: a refusal behind a waiter is no strike', run: strikeCase },
  { name: 'turns: a batch of several keys without waiters', run: (venue) => batchCase(venue, [bucket], 11, []) },
  { name: 'turns: a batch of several keys', run: (venue) => batchCase(venue, [bucket], 11) },
  {
    name: 'turns: a batch of several keys and cells',
    run: (venue) => batchCase(venue, [log, bucket], 21),
  },
]
