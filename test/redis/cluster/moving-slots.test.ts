// Release: runs clusters. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  everyone,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  slidingLog,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { decided } from '../../support/decided.js'
import { byEffort } from '../../support/effort.js'
import { moveSlot } from '../../support/move-slot.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { slotOfIdentity } from '../../support/slots.js'
import { type OpenStore, openStore } from '../../support/stores.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

/** Several identities on each of several slots of the first master. */
function identities(): string[][] {
  const first = Array.from({ length: 5 }, (_, n) => cluster.identityOn(0, `first-${n}`))
  const bySlot = new Map(first.map((identity) => [slotOfIdentity(identity), [identity]]))
  for (let n = 0; [...bySlot.values()].some(({ length }) => length < 3); n++) {
    const group = bySlot.get(slotOfIdentity(`user-${n}`))
    if (group && group.length < 3) group.push(`user-${n}`)
  }
  return [...bySlot.values()]
}

let groups: string[][]
beforeAll(() => {
  groups = identities()
})

const policies: Record<string, { limits: Limit<string>[]; room: number }> = {
  'an exact log': { limits: [slidingLog({ limit: 40, window: '1h' })], room: 40 },
  'limits of three kinds': {
    limits: [
      slidingLog({ limit: 40, window: '1h' }),
      gcra({ limit: 30, window: '1d' }),
      concurrency({ limit: 50, ttl: '1h' }),
    ],
    room: 30,
  },
  'limits that share a key': {
    limits: [
      gcra({ limit: 30, window: '1d' }),
      fixedWindow({ limit: 400, window: '365d' }),
      slidingWindow({ limit: 500, window: '30d' }),
      slidingLog({ limit: 40, window: '1h' }),
    ],
    room: 30,
  },
  'a limit of all together': {
    limits: [slidingLog({ limit: 40, window: '1h' }), slidingLog({ limit: 100_000, window: '1h', key: everyone() })],
    room: 40,
  },
}

/** A test before a merge runs half of the policies over each client, and each policy over half of the clients. */
const policiesOver = (client: number) =>
  Object.entries(policies).filter((_, policy) => byEffort({ usual: (client + policy) % 2 === 0, full: true }))

describe.each(oneOfEach(clusterClients))('while slots move between masters, over %s', (kind) => {
  let open: OpenStore[]
  beforeEach(async () => {
    await cluster.flush()
    open = await Promise.all([openStore(clusterClients[kind](cluster)), openStore(clusterClients[kind](cluster))])
  })
  afterEach(() => Promise.all(open.map((one) => one.close())))

  test.each(policiesOver(oneOfEach(clusterClients).indexOf(kind)))(
    '%s: every request is decided while slots move, and exactly the limit is admitted',
    async (_, { limits, room }) => {
      const all = groups.flat()
      const limiters = open.map(({ store }) => createLimiter({ name: 'moving', store, limits }))
      const blocked = all[0] as string
      await (limiters[0] as Limiter).block({ key: blocked }, { for: '1h', reason: 'scraping' })
      const charged = new Map<string, number>()
      const verdicts: Verdict[] = []
      let isOver = false
      const load = async (limiter: Limiter, turn: number): Promise<void> => {
        for (let n = turn; !isOver; n++) {
          const chosen = Array.from({ length: 12 }, (_, i) => all[(n * 5 + i * 7) % all.length] as string)
          await Promise.all(
            chosen.map(async (identity, i) => {
              const verdict = await limiter.consume(identity)
              verdicts.push(verdict)
              if (!verdict.allowed) return
              // Some are refunded while their slot moves.
              if ((n + i) % 4 === 0) expect(await limiter.refund(identity, verdict)).toBe(true)
              else charged.set(identity, (charged.get(identity) ?? 0) + 1)
            }),
          )
        }
      }
      const loads = Promise.all(limiters.map(load))
      const [first, second] = cluster.masters as [RedisCluster['masters'][number], RedisCluster['masters'][number]]
      try {
        for (const [from, to] of [
          [first, second],
          [second, first],
        ] as const) {
          for (const [group] of groups.entries()) {
            await moveSlot(cluster, slotOfIdentity(groups[group]?.[0] as string), from, to)
          }
        }
      } finally {
        isOver = true
        await loads
      }
      expect(verdicts.filter((verdict) => verdict.kind === 'unavailable')).toEqual([])
      // A store repeats a refusal for a second, even after another one has refunded.
      await sleep(1100)
      // Identities below the limit reach exactly it.
      for (const identity of all) {
        for (;;) {
          const verdict = await decided((limiters[0] as Limiter).consume(identity))
          if (!verdict.allowed) break
          charged.set(identity, (charged.get(identity) ?? 0) + 1)
        }
      }
      expect(all.map((identity) => charged.get(identity) ?? 0)).toEqual(all.map((id) => (id === blocked ? 0 : room)))
    },
  )
})
