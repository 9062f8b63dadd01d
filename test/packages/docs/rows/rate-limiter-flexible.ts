import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  list,
  perMinute,
  perSecond,
  type Verdict,
} from '@sluice/core'
import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterQueue,
  RateLimiterRedis,
  RateLimiterRedisNonAtomic,
  type RateLimiterRes,
  RateLimiterUnion,
  RLWrapperBlackAndWhite,
  RLWrapperTimeouts,
} from 'rate-limiter-flexible'
import { expect } from 'vitest'
import { AWAY, awayRedis, inRealTime, passMs, redis, storeOn, whileHung } from './environment.js'
import { differs, errorOf, type Look, type Rows, same, untried } from './row.js'

interface Consuming {
  consume(key: string, points?: number, options?: object): Promise<unknown>
}

const MINUTE = { points: 2, duration: 60 }
const peerOf = (options: object = {}) => new RateLimiterMemory({ ...MINUTE, ...options })
// The options of a row are those of its page, which `createLimiter` checks.
const oursOf = (options: object = {}): Limiter => createLimiter({ limit: 2, window: '60s', ...options } as never)

/** Whether a call is admitted, or the message of its error. */
async function peerSays(limiter: Consuming, key = 'ann', points = 1, options = {}): Promise<unknown> {
  try {
    await limiter.consume(key, points, options)
    return true
  } catch (refusal) {
    return refusal instanceof Error ? refusal.message : false
  }
}

const ourSays = async (limiter: Limiter, key = 'ann', cost = 1) => (await limiter.consume(key, { cost })).allowed

/** What becomes of calls, one after the other: three of one key by default. */
const peer =
  (make: () => Consuming | Promise<Consuming>, keys: readonly string[] = THREE): Look =>
  async () => {
    const limiter = await make()
    const said: unknown[] = []
    for (const key of keys) said.push(await peerSays(limiter, key))
    return said
  }
const ours =
  (make: () => Limiter | Promise<Limiter>, keys: readonly string[] = THREE): Look =>
  async () => {
    const limiter = await make()
    const said: boolean[] = []
    for (const key of keys) said.push(await ourSays(limiter, key))
    return said
  }
const THREE = ['ann', 'ann', 'ann']

/** The same, of calls before which so many ms pass. */
const peerAfter =
  (make: () => Consuming, ...waits: readonly number[]): Look =>
  async () => {
    const limiter = make()
    const said: unknown[] = []
    for (const ms of waits) {
      passMs(ms)
      said.push(await peerSays(limiter))
    }
    return said
  }
const oursAfter =
  (make: () => Limiter, ...waits: readonly number[]): Look =>
  async () => {
    const limiter = make()
    const said: boolean[] = []
    for (const ms of waits) {
      passMs(ms)
      said.push(await ourSays(limiter))
    }
    return said
  }

/** The result of the last of so many calls. */
const peerResult =
  (of: (result: RateLimiterRes) => unknown, calls = 1): Look =>
  async () => {
    const limiter = peerOf()
    let last: unknown
    for (let n = 0; n < calls; n++) last = await limiter.consume('ann').catch((refusal) => refusal)
    return of(last as RateLimiterRes)
  }
const ourResult =
  (of: (verdict: Verdict) => unknown, calls = 1): Look =>
  async () => {
    const limiter = oursOf()
    let last: Verdict | undefined
    for (let n = 0; n < calls; n++) last = await limiter.consume('ann')
    return of(last as Verdict)
  }

/** Whether a call waits for a timer: none runs before all promises that are due have been kept. */
async function isLate(call: Promise<unknown>): Promise<boolean> {
  let isDone = false
  const done = call.then(() => {
    isDone = true
  })
  for (let n = 0; n < 100; n++) await undefined
  const late = !isDone
  await done
  return late
}

const SHORT = 0.3
const acrossWindows = [0, 59_000, 2000, 0]
const NO_STORE = 'there is no such store'

export const ROWS: Rows = {
  // Differences
  algorithm: [
    differs(
      peerAfter(peerOf, ...acrossWindows),
      oursAfter(oursOf, ...acrossWindows),
      { peer: [true, true, true, true], ours: [true, true, true, false] },
      'Up to twice the limit can pass in a window',
    ),
    same(
      peerAfter(peerOf, ...acrossWindows),
      oursAfter(
        () => createLimiter({ limits: [fixedWindow({ limit: 2, window: '60s', anchor: 'first-request' })] }),
        ...acrossWindows,
      ),
      [true, true, true, true],
    ),
  ],
  'a refusal': differs(
    async () =>
      (
        await peerOf({ points: 0 })
          .consume('ann')
          .catch((refusal) => refusal)
      ).constructor.name,
    async () => (await oursOf({ limit: 0 }).consume('ann')).allowed,
    { peer: 'RateLimiterRes', ours: false },
    'a verdict with `allowed: false`',
  ),
  'refused requests': differs(
    async () => {
      const limiter = peerOf()
      for (let n = 0; n < 4; n++) await peerSays(limiter)
      return (await limiter.get('ann'))?.consumedPoints
    },
    async () => {
      const limiter = oursOf()
      for (let n = 0; n < 4; n++) await ourSays(limiter)
      return 2 - (await limiter.peek('ann')).remaining
    },
    { peer: 4, ours: 2 },
    'do not count',
  ),
  'units of time': untried('tried under `duration`'),
  'several limits': differs(
    () => leftOfUnion(),
    async () => {
      const limiter = createLimiter({ limits: [perSecond(9), perMinute(1)] })
      for (let n = 0; n < 3; n++) await limiter.consume('ann')
      return (await limiter.peek('ann')).limits[0]?.remaining
    },
    { peer: 6, ours: 8 },
    'If one refuses, the others are charged all the same',
  ),
  'existing counts': differs(
    async () => {
      const client = await redis()
      await peerSays(new RateLimiterRedis({ storeClient: client, points: 1, duration: 60 }))
      const said = await peerSays(new RateLimiterRedis({ storeClient: client, points: 1, duration: 60 }))
      return [said, ...(await client.keys('*'))]
    },
    async () => {
      const client = await redis()
      await peerSays(new RateLimiterRedis({ storeClient: client, points: 1, duration: 60 }))
      return [await ourSays(oursOf({ limit: 1, store: storeOn(client) }))]
    },
    { peer: [false, 'rlflx:ann'], ours: [true] },
    'clients start afresh',
  ),

  // Options of all limiters
  '`points`': same(
    peer(() => peerOf({ points: 1 })),
    ours(() => oursOf({ limit: 1 })),
    [true, false, false],
  ),
  '`duration`': [
    same(
      peerAfter(() => peerOf({ points: 1, duration: 90 }), 0, 89_000, 2000),
      oursAfter(() => oursOf({ limit: 1, window: '90s' }), 0, 89_000, 2000),
      [true, false, true],
    ),
    differs(
      peerAfter(() => peerOf({ points: 1, duration: 0 }), 0, 1e12),
      () => errorOf(() => oursOf({ window: 0 })),
      { peer: [true, false], ours: expect.stringContaining('window') },
      'has no equivalent',
    ),
  ],
  '`keyPrefix`': same(
    async () => {
      const client = await redis()
      await peerSays(new RateLimiterRedis({ storeClient: client, keyPrefix: 'api', points: 1, duration: 60 }))
      return (await client.keys('*')).every((key) => key.startsWith('api'))
    },
    async () => {
      const client = await redis()
      await ourSays(oursOf({ name: 'mail', store: storeOn(client, { prefix: 'api:', timeout: 5000 }) }))
      return (await client.keys('*')).every((key) => key.startsWith('api'))
    },
    true,
  ),
  '`blockDuration`': same(
    peerAfter(() => peerOf({ points: 1, duration: 10, blockDuration: 3600 }), 0, 0, 3_590_000, 20_000),
    oursAfter(() => blocking(oursOf({ limit: 1, window: '10s' }), 1), 0, 0, 3_590_000, 20_000),
    [true, false, false, true],
  ),
  '`blockOnConsumed`': same(async () => {
    const storeClient = await redis()
    const limiter = new RateLimiterRedis({
      storeClient,
      points: 1,
      duration: 1,
      blockDuration: 3600,
      blockOnConsumed: 3,
    })
    const said = [await peerSays(limiter), await peerSays(limiter), await peerSays(limiter)]
    return [said, ((await limiter.get('ann'))?.msBeforeNext ?? 0) > 3_000_000]
  }, async () => {
    const limiter = blocking(oursOf({ limit: 1, window: '1s' }), 2)
    const said = [await ourSays(limiter), await ourSays(limiter), await ourSays(limiter)]
    return [said, ((await limiter.peek('ann')).retryAfterMs ?? 0) > 3_000_000]
  }, [[true, false, false], true]),
  '`execEvenly`': same(
    inRealTime(async () => {
      const limiter = peerOf({ points: 4, duration: SHORT, execEvenly: true })
      return [await isLate(limiter.consume('ann')), await isLate(limiter.consume('ann'))]
    }),
    inRealTime(async () => {
      const limiter = createLimiter({ limits: [leakyBucket({ leak: 1, every: 80, queue: true })] })
      return [await isLate(limiter.acquire('ann')), await isLate(limiter.acquire('ann'))]
    }),
    [false, true],
  ),
  '`execEvenlyMinDelayMs`': untried('a number of the bucket that is tried under `execEvenly`'),
  '`insuranceLimiter`': same(async () => {
    const insuranceLimiter = peerOf()
    const storeClient = await awayRedis()
    return peer(() => new RateLimiterRedis({ storeClient, ...MINUTE, insuranceLimiter }))()
  }, async () => {
    const store = storeOn(await awayRedis(), AWAY)
    return ours(() => oursOf({ store }))()
  }, [true, true, false]),

  // Options of limiters with a store
  '`storeClient`': same(async () => {
    const storeClient = await redis()
    const limiter = () => new RateLimiterRedis({ storeClient, ...MINUTE })
    return [await peerSays(limiter()), await peerSays(limiter()), await peerSays(limiter())]
  }, async () => {
    const client = await redis()
    const limiter = () => oursOf({ name: 'mail', store: storeOn(client) })
    return [await ourSays(limiter()), await ourSays(limiter()), await ourSays(limiter())]
  }, [true, true, false]),
  '`storeType`, `useRedisPackage`, `useRedis3AndLowerPackage`': untried('test/redis tries each client'),
  '`inMemoryBlockOnConsumed`, `inMemoryBlockDuration`': untried('test/redis tries the deny cache'),
  '`rejectIfRedisNotReady`, `rejectIfValkeyNotReady`': differs(
    async () => {
      const storeClient = await awayRedis()
      return peerSays(new RateLimiterRedis({ storeClient, ...MINUTE, rejectIfRedisNotReady: true }))
    },
    async () => ourSays(oursOf({ store: storeOn(await awayRedis(), AWAY) })),
    { peer: 'Redis connection is not ready', ours: true },
    'no decision waits for a lost connection',
  ),
  '`customIncrTtlLuaScript`, `customFunction`, `customFunctionLibName`': untried('nothing replaces them'),
  '`timeoutMs` (`RateLimiterCluster`, `RLWrapperTimeouts`)': untried('tried under `RLWrapperTimeouts`'),
  '`dbName`, `tableName`, `tableCreated`, `schemaName`, `schema`, `clearExpiredByTimeout` (SQL)': untried(NO_STORE),
  '`indexKeyPrefix`, `disableIndexesCreation` (MongoDB)': untried(NO_STORE),
  '`dynamoTableOpts`, `ttlSet` (DynamoDB)': untried(NO_STORE),

  // Options of wrappers
  '`limiter` (of a wrapper)': untried('tried with each wrapper'),
  '`whiteList`, `isWhiteListed`': [
    same(
      peer(
        () => new RLWrapperBlackAndWhite({ limiter: peerOf({ points: 1 }), whiteList: ['ann'] }),
        ['ann', 'ann', 'bob', 'bob'],
      ),
      ours(() => oursOf({ limit: 1, allow: list({ key: ['ann'] }) }), ['ann', 'ann', 'bob', 'bob']),
      [true, true, true, false],
    ),
    same(
      peer(
        () => new RLWrapperBlackAndWhite({ limiter: peerOf({ points: 1 }), isWhiteListed: (key) => key === 'ann' }),
        ['ann', 'ann', 'bob', 'bob'],
      ),
      ours(() => oursOf({ limit: 1, allow: (key: string) => key === 'ann' }), ['ann', 'ann', 'bob', 'bob']),
      [true, true, true, false],
    ),
  ],
  '`blackList`, `isBlackListed`': [
    same(
      peer(() => new RLWrapperBlackAndWhite({ limiter: peerOf(), blackList: ['ann'] }), ['ann', 'bob']),
      ours(() => oursOf({ deny: list({ key: ['ann'] }) }), ['ann', 'bob']),
      [false, true],
    ),
    same(
      peer(
        () => new RLWrapperBlackAndWhite({ limiter: peerOf(), isBlackListed: (key) => key === 'ann' }),
        ['ann', 'bob'],
      ),
      ours(() => oursOf({ deny: (key: string) => key === 'ann' }), ['ann', 'bob']),
      [false, true],
    ),
  ],
  '`runActionAnyway`': differs(
    async () => {
      const limiter = peerOf()
      await new RLWrapperBlackAndWhite({ limiter, whiteList: ['ann'], runActionAnyway: true }).consume('ann')
      return (await limiter.get('ann'))?.consumedPoints
    },
    async () => {
      const limiter = oursOf({ allow: list({ key: ['ann'] }) })
      return (await limiter.consume('ann')).cost
    },
    { peer: 1, ours: 0 },
    'calls that a list decides do not count',
  ),
  '`maxQueueSize`': same(
    inRealTime(async () => {
      const queue = new RateLimiterQueue(peerOf({ points: 1, duration: SHORT }), { maxQueueSize: 1 })
      await queue.removeTokens(1)
      return isRefused([queue.removeTokens(1), queue.removeTokens(1)])
    }),
    inRealTime(async () => {
      const limiter = oursOf({ limit: 1, window: SHORT * 1000 })
      await limiter.acquire('ann', { size: 1 })
      return isRefused([limiter.acquire('ann', { size: 1 }), limiter.acquire('ann', { size: 1 })])
    }),
    [false, true],
  ),

  // Classes
  '`RateLimiterMemory`': untried('tried under `points`'),
  '`RateLimiterRedis`, `RateLimiterRedisNonAtomic`, `RateLimiterValkey`': same(async () => {
    const storeClient = await redis()
    return peer(() => new RateLimiterRedisNonAtomic({ storeClient, ...MINUTE }))()
  }, async () => {
    const store = storeOn(await redis())
    return ours(() => oursOf({ store }))()
  }, [true, true, false]),
  '`RateLimiterValkeyGlide`': untried('a client that is not installed'),
  '`RateLimiterCluster`, `RateLimiterClusterMaster`, `RateLimiterClusterMasterPM2`': untried('nothing replaces them'),
  '`RateLimiterUnion`': same(
    peer(() => new RateLimiterUnion(peerOf({ keyPrefix: 'a', points: 1 }), peerOf({ keyPrefix: 'b', points: 2 }))),
    ours(() => createLimiter({ limits: [perMinute(1), fixedWindow({ limit: 2, window: '1m' })] })),
    [true, false, false],
  ),
  '`BurstyRateLimiter`': same(
    peerAfter(
      () =>
        new BurstyRateLimiter(
          peerOf({ points: 1, duration: 10 }),
          peerOf({ keyPrefix: 'burst', points: 1, duration: 60 }),
        ),
      0,
      0,
      0,
      10_000,
      0,
    ),
    oursAfter(() => createLimiter({ limits: [gcra({ limit: 1, window: '10s', burst: 2 })] }), 0, 0, 0, 10_000, 0),
    [true, true, false, true, false],
  ),
  '`RateLimiterQueue`': same(
    inRealTime(async () => {
      const queue = new RateLimiterQueue(peerOf({ points: 1, duration: SHORT }))
      return [await isLate(queue.removeTokens(1)), await isLate(queue.removeTokens(1))]
    }),
    inRealTime(async () => {
      const limiter = oursOf({ limit: 1, window: SHORT * 1000 })
      return [
        await isLate(limiter.acquire('ann', { maxWait: '10s' })),
        await isLate(limiter.acquire('ann', { maxWait: '10s' })),
      ]
    }),
    [false, true],
  ),
  '`RLWrapperBlackAndWhite`': untried('tried under `whiteList` and `blackList`'),
  '`RLWrapperTimeouts`': differs(
    async () => {
      const client = await redis()
      const limiter = new RLWrapperTimeouts({
        limiter: new RateLimiterRedis({ storeClient: client, ...MINUTE }),
        timeoutMs: 50,
      })
      await peerSays(limiter)
      return whileHung(() => peerSays(limiter))
    },
    async () => {
      const client = await redis()
      const limiter = oursOf({ store: storeOn(client, { timeout: 50, connectTimeout: 5000 }) })
      await ourSays(limiter)
      return whileHung(async () => {
        const { allowed, kind } = await limiter.consume('ann')
        return [allowed, kind]
      })
    },
    { peer: 'Operation timed out', ours: [true, 'unavailable'] },
    'An operation that takes longer is decided as in an outage',
  ),
  '`RateLimiterMongo`, `RateLimiterMySQL`, `RateLimiterPostgres`, `RateLimiterSQLite`, `RateLimiterPrisma`, `RateLimiterDrizzle`, `RateLimiterDynamo`, `RateLimiterMemcache`, `RateLimiterEtcd`':
    untried(NO_STORE),

  // Methods and results
  '`consume(key, points)`': same(async () => {
    const limiter = peerOf({ points: 5 })
    return [await peerSays(limiter, 'ann', 3), await peerSays(limiter, 'ann', 3)]
  }, async () => {
    const limiter = oursOf({ limit: 5 })
    return [await ourSays(limiter, 'ann', 3), await ourSays(limiter, 'ann', 3)]
  }, [true, false]),
  '`consume(key, points, { customDuration })`': untried('another limiter, as under `duration`'),
  '`penalty(key, points)`': [
    same(async () => {
      const limiter = peerOf({ points: 3 })
      await limiter.penalty('ann', 2)
      return [await peerSays(limiter), await peerSays(limiter)]
    }, async () => {
      const limiter = oursOf({ limit: 3, onDeny: 'charge' })
      await limiter.consume('ann', { cost: 2 })
      return [await ourSays(limiter), await ourSays(limiter)]
    }, [true, false]),
    differs(
      async () => {
        const limiter = peerOf({ points: 3 })
        await limiter.penalty('ann', 4)
        return peerSays(limiter)
      },
      async () => {
        const limiter = oursOf({ limit: 3, onDeny: 'charge' })
        await limiter.consume('ann', { cost: 4 })
        return ourSays(limiter)
      },
      { peer: false, ours: true },
      'A cost above the limit charges nothing',
    ),
  ],
  '`reward(key, points)`': [
    same(async () => {
      const limiter = peerOf({ points: 1 })
      await limiter.consume('ann')
      await limiter.reward('ann', 1)
      return [await peerSays(limiter), await peerSays(limiter)]
    }, async () => {
      const limiter = oursOf({ limit: 1 })
      await limiter.refund('ann', await limiter.consume('ann'))
      return [await ourSays(limiter), await ourSays(limiter)]
    }, [true, false]),
    same(
      async () => {
        const limiter = peerOf({ points: 5 })
        await limiter.consume('ann', 4)
        await limiter.reward('ann', 3)
        return (await limiter.get('ann'))?.remainingPoints
      },
      async () => {
        const limiter = oursOf({ limit: 5 })
        const verdict = await limiter.consume('ann', { cost: 4 })
        await verdict.settle(1)
        return (await limiter.peek('ann')).remaining
      },
      4,
    ),
  ],
  '`get(key)`': differs(
    async () => {
      const limiter = peerOf()
      const before = await limiter.get('ann')
      await limiter.consume('ann')
      return [before, (await limiter.get('ann'))?.remainingPoints]
    },
    async () => {
      const limiter = oursOf()
      const before = (await limiter.peek('ann')).remaining
      await limiter.consume('ann')
      return [before, (await limiter.peek('ann')).remaining]
    },
    { peer: [null, 1], ours: [2, 1] },
    'the result is the whole quota, not `null`',
  ),
  '`set(key, points, seconds)`': same(
    async () => {
      const limiter = peerOf({ points: 5 })
      await limiter.consume('ann')
      await limiter.set('ann', 4, 60)
      return (await limiter.get('ann'))?.remainingPoints
    },
    async () => {
      const limiter = oursOf({ limit: 5 })
      await limiter.consume('ann')
      await limiter.reset('ann')
      await limiter.consume('ann', { cost: 4 })
      return (await limiter.peek('ann')).remaining
    },
    1,
  ),
  '`block(key, seconds)`': [
    same(async () => {
      const limiter = peerOf()
      await limiter.block('ann', 3600)
      return peerAfter(() => limiter, 0, 3_590_000, 20_000)()
    }, async () => {
      const limiter = oursOf()
      await limiter.block('ann', { for: '1h' })
      return oursAfter(() => limiter, 0, 3_590_000, 20_000)()
    }, [false, false, true]),
    same(async () => {
      const limiter = peerOf()
      await limiter.block('ann', 0)
      return peerAfter(() => limiter, 0, 1e12)()
    }, async () => {
      const limiter = oursOf()
      await limiter.block('ann', { for: Number.POSITIVE_INFINITY })
      return oursAfter(() => limiter, 0, 1e12)()
    }, [false, false]),
  ],
  '`delete(key)`': [
    same(
      async () => {
        const limiter = peerOf({ points: 1 })
        await limiter.consume('ann')
        await limiter.delete('ann')
        return peerSays(limiter)
      },
      async () => {
        const limiter = oursOf({ limit: 1 })
        await limiter.consume('ann')
        await limiter.reset('ann')
        return ourSays(limiter)
      },
      true,
    ),
    same(
      async () => {
        const limiter = peerOf()
        await limiter.block('ann', 3600)
        await limiter.delete('ann')
        return peerSays(limiter)
      },
      async () => {
        const limiter = oursOf()
        await limiter.block('ann', { for: '1h' })
        await limiter.unblock('ann')
        return ourSays(limiter)
      },
      true,
    ),
  ],
  '`getTokensRemaining(key)`, `removeTokens(tokens, key)`': same(
    async () => {
      const queue = new RateLimiterQueue(peerOf({ points: 3 }))
      await queue.removeTokens(2, 'ann')
      return queue.getTokensRemaining('ann')
    },
    async () => {
      const limiter = oursOf({ limit: 3 })
      await limiter.acquire('ann', { cost: 2, maxWait: '10s' })
      return (await limiter.peek('ann')).remaining
    },
    1,
  ),
  '`deleteInMemoryBlockedAll()`': untried('nothing replaces it'),
  '`dump()`, `restore(data)`': untried('nothing replaces them'),
  '`getKey(key)`, `parseKey(key)`': untried('nothing replaces them'),
  '`remainingPoints`': same(
    peerResult(({ remainingPoints }) => remainingPoints),
    ourResult(({ remaining }) => remaining),
    1,
  ),
  '`msBeforeNext`': [
    same(
      peerResult(({ msBeforeNext }) => msBeforeNext, 3),
      ourResult(({ retryAfterMs }) => retryAfterMs, 3),
      60_000,
    ),
    same(
      peerResult(({ msBeforeNext }) => msBeforeNext),
      ourResult(({ resetAfterMs }) => resetAfterMs),
      60_000,
    ),
  ],
  '`consumedPoints`': same(
    peerResult(({ consumedPoints }) => consumedPoints),
    ourResult(({ remaining }) => 2 - remaining),
    1,
  ),
  '`isFirstInDuration`': untried('nothing replaces it'),
}

/** Blocks for an hour after so many refusals, as the page shows. */
function blocking(limiter: Limiter, after: number): Limiter {
  let refusals = 0
  return Object.assign(Object.create(limiter), {
    async consume(key: string) {
      const verdict = await limiter.consume(key)
      if (verdict.reason === 'limited' && ++refusals === after) await limiter.block(key, { for: '1h' })
      return verdict
    },
    peek: (key: string) => limiter.peek(key),
  })
}

/** What a second limiter has left after three calls, of which it admits all and another one the first. */
async function leftOfUnion(): Promise<number | undefined> {
  const second = peerOf({ keyPrefix: 'second', points: 9, duration: 1 })
  const union = new RateLimiterUnion(second, peerOf({ keyPrefix: 'minute', points: 1 }))
  for (let n = 0; n < 3; n++) await peerSays(union as Consuming)
  return (await second.get('ann'))?.remainingPoints
}

const isRefused = (calls: readonly Promise<unknown>[]) =>
  Promise.all(
    calls.map((call) =>
      call.then(
        () => false,
        () => true,
      ),
    ),
  )
