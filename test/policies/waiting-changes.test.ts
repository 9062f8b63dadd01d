import { EventEmitter } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { everyone, memoryStore, queue, redisStore, slidingLog } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { startCounting } from '@sluice/core/metrics'
import fc from 'fast-check'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { byEffort } from '../support/effort.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { client } = await redisForTests()
afterEach(() => client.flushall())

const hour = (limit: number) => [{ limit, window: '1h' }]
const api = (limit: number, more: object = {}) => ({ policies: { api: { key: 'user', limits: hour(limit), ...more } } })

interface Client {
  readonly user: string
  /** The duration of its look-ups once it waits. */
  readonly lookupMs: number
  waits: boolean
}

/** A look-up that a test lets pass. */
function gate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

/** Requests of one client for a document that a test changes. `more`: options of the guard, and of the policies. */
async function serviceOf(first: object, more: { guard?: object; policies?: object } = {}) {
  const service = await changingPolicies(first, {
    policies: { keys: { user: () => 'ann' }, ...more.policies },
    guard: { respond: queue({ maxWait: '12h' }), ...more.guard },
  })
  return { ...service, request: async (given: object = {}) => (await service.guard(contextOf(given))).proceed }
}

describe('a request that is refused while its document changes', () => {
  /** A request beyond a limit of 1, whose priority is looked up until another limit is in force. */
  async function refusedWhileChanging(limit: number) {
    const lookup = gate()
    const priority = () => lookup.passed.then(() => 0)
    const service = await serviceOf(api(1), { guard: { respond: queue({ maxWait: '12h', priority }) } })
    expect(await service.request()).toBe(true)
    const refused = service.request()
    await sleep(10)
    await service.change(api(limit))
    lookup.open()
    return { service, refused }
  }

  test('is admitted by the new limit at once, as are the next ones', async () => {
    const { service, refused } = await refusedWhileChanging(3)
    expect(await Promise.all([refused, service.request()])).toEqual([true, true])
  })

  test('is admitted by the new limit at once where its own key is looked up meanwhile', async () => {
    const lookup = gate()
    let lookups = 0
    // Once for its decision, and again when it begins to wait.
    const user = () => (++lookups === 3 ? lookup.passed.then(() => 'ann') : 'ann')
    const service = await serviceOf(api(1), { policies: { keys: { user } } })
    expect(await service.request()).toBe(true)
    const refused = service.request()
    await sleep(10)
    await service.change(api(3))
    lookup.open()
    expect(await refused).toBe(true)
  })

  test('waits by the limits of the new document where these are lower', async () => {
    const { refused } = await refusedWhileChanging(0)
    expect(await refused).toBe(false)
  })

  test('is admitted by the limits of another tier that it has by then', async () => {
    let lookups = 0
    const guard = createGuard({
      store: memoryStore(),
      key: everyone(),
      tier: () => (++lookups < 3 ? 'free' : 'paid'),
      tiers: { free: [slidingLog({ limit: 1, window: '1h' })], paid: [slidingLog({ limit: 5, window: '1h' })] },
      respond: queue({ maxWait: '12h' }),
    })
    expect((await guard(contextOf())).proceed).toBe(true)
    expect((await guard(contextOf())).proceed).toBe(true)
  })
})

describe('the order of requests that wait', () => {
  const counting = startCounting()
  afterAll(() => counting.stop())
  const waitingNow = () => counting.read().queues.find(({ policy }) => policy === 'default')?.waiting ?? 0

  const stores = { memory: () => memoryStore(), redis: () => redisStore(client, { timeout: 5000 }) }
  const lookups = {
    'without look-ups': () => 'a',
    'with look-ups that last as long': () => sleep(3, 'a'),
    'with look-ups that last longer or shorter': () => sleep(Math.random() * 10, 'a'),
  }
  const changes = {
    limit: (n: number) => ({ limit: n, window: '1h' }),
    window: (n: number) => ({ limit: 1, window: `${n}h` }),
    algorithm: (n: number) => ({ limit: 1, window: `${n}h`, algorithm: n % 2 === 0 ? 'fixedWindow' : 'slidingLog' }),
  }
  const all = Object.keys(stores).flatMap((store) =>
    Object.keys(lookups).flatMap((lookup) => Object.keys(changes).map((change) => [store, change, lookup])),
  ) as [keyof typeof stores, keyof typeof changes, keyof typeof lookups][]

  test.each(all)('stays where the %s decides and the %s changes again and again, %s', async (where, what, how) => {
    let isChanging = false
    let changed = 1
    const document = () => {
      const tiers = { a: [changes[what](changed)] }
      return { policies: { api: { key: 'user', tier: 'plan', tiers } } }
    }
    const plan = () => (isChanging ? lookups[how]() : 'a')
    const store = stores[where]()
    const respond = queue({ maxWait: Number.POSITIVE_INFINITY })
    const service = await serviceOf(document(), { guard: { store, respond }, policies: { tiers: { plan } } })
    expect(await service.request()).toBe(true)
    const done: number[] = []
    const come = (name: number) => service.request().then(() => done.push(name))
    const others = waitingNow()
    for (let name = 0; name < 6; name++) {
      come(name)
      await until(`${name + 1} wait`, () => waitingNow() === others + name + 1)
    }
    isChanging = true
    for (let admitted = 1; admitted <= 7; admitted++) {
      changed++
      await service.change(document())
      await sleep(Math.random() * 3)
      // A new one comes while those that wait follow the change.
      if (admitted === 1) come(6)
      await until(`${admitted} are admitted`, () => done.length === admitted)
    }
    await store.close?.()
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6])
  })
})

/** A step of a test: a client comes, the last one that came leaves, or the document changes. */
const steps = fc.array(
  fc.record({
    what: fc.constantFrom('come', 'come', 'come', 'leave', 'limit', 'window', 'policy'),
    user: fc.constantFrom('ann', 'bob'),
    lookupMs: fc.nat(4),
    pauseMs: fc.nat(4),
  }),
  { minLength: 4, maxLength: 16 },
)

test('requests that come, leave and wait while documents change are all admitted once there is room, in the order of each client', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      let [limit, hours, isBoth] = [1, 1, false]
      const limits = () => [{ limit, window: `${hours}h` }]
      const document = () => ({
        policies: {
          api: { key: 'user', tier: 'plan', tiers: { a: limits() } },
          ...(isBoth && { all: { key: 'everyone', limits: [{ limit: 500, window: '1h' }] } }),
        },
      })
      const service = await serviceOf(document(), {
        guard: { respond: queue({ maxWait: Number.POSITIVE_INFINITY }) },
        policies: {
          keys: { user: ({ user }: Client) => user },
          tiers: { plan: ({ waits, lookupMs }: Client) => (waits && lookupMs > 0 ? sleep(lookupMs, 'a') : 'a') },
        },
      })
      // In the order of their decisions: look-ups that follow may delay a request further.
      const admitted: string[] = []
      service.limiter.on('decision', ({ path, verdict }) => {
        if (verdict.allowed && path !== undefined && !admitted.includes(path)) admitted.push(path)
      })
      const left = new Set<string>()
      const came: { path: string; response: EventEmitter; ended: Promise<unknown> }[] = []
      for (const { what, pauseMs, user, lookupMs } of all) {
        if (what === 'come') {
          const client = { user, lookupMs, waits: false }
          const response = new EventEmitter()
          const path = `/${user}/${came.length}`
          came.push({ path, response, ended: service.request({ request: client, response, path }) })
          // The next one comes when this one waits.
          await setImmediate()
          client.waits = true
        } else if (what === 'leave') {
          const last = came.at(-1)
          if (last) left.add(last.path)
          last?.response.emit('close')
        } else {
          if (what === 'limit') limit++
          else if (what === 'window') hours++
          else isBoth = !isBoth
          await service.change(document())
        }
        await sleep(pauseMs)
      }
      limit = 1000
      await service.change(document())
      await Promise.all(came.map(({ ended }) => ended))
      for (const user of ['ann', 'bob']) {
        const of = (paths: readonly string[]) => paths.filter((path) => path.startsWith(`/${user}`) && !left.has(path))
        expect(of(admitted)).toEqual(of(came.map(({ path }) => path)))
      }
    }),
    { numRuns: byEffort({ quick: 25, usual: 50, full: 600 }) },
  )
})
