import {
  byUser,
  compose,
  createGuard,
  createLimiter,
  memoryStore,
  redisStore,
  type Store,
  slidingLog,
} from '@sluice/core'
import fc from 'fast-check'
import { contextOf } from '../support/context.js'
import { standIn } from '../support/stand-in.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { lookalikes, type Make, notAValue, number, text } from './support/hostile.js'

/** A memory store that shows the identities it is asked about. */
function shownStore(): { store: Store; seen: string[] } {
  const { decide, ...rest } = bound(memoryStore())
  const seen: string[] = []
  const store: Store = {
    ...rest,
    decide(ask) {
      seen.push(...ask.identities)
      return decide(ask)
    },
  }
  return { store, seen }
}

function bound(store: Store): Store {
  return {
    decide: (ask) => store.decide(ask),
    reset: (...args) => store.reset(...args),
    block: (...args) => store.block(...args),
    unblock: (...args) => store.unblock(...args),
    close: () => store.close(),
  }
}

const memory = shownStore()
const inMemory = createLimiter({ name: 'fuzz', store: memory.store, limit: 1, window: '1h' })

fuzz('keys', 'keys that differ have quotas of their own in memory, of a bounded size', {
  inputs: lookalikes,
  async check([a, b]) {
    if (a === '' || b === '' || a === b) return
    memory.seen.length = 0
    must((await inMemory.consume(a)).allowed, 'one of two is charged')
    must((await inMemory.peek(b)).remaining === 1, 'the other is not')
    await inMemory.block(b, { for: '1h' })
    must((await inMemory.peek(a)).reason === 'limited', 'the other is blocked, and not the one')
    await inMemory.unblock(b)
    await inMemory.reset(b)
    must(!(await inMemory.consume(a)).allowed, 'the other is forgotten, and not the one')
    await inMemory.reset(a)
    must((await inMemory.peek(a)).remaining === 1, 'forgotten')
    for (const identity of memory.seen) must(identity.length <= 'key='.length + 256, 'a bounded key', identity.length)
  },
})

/** Everything that one call of a limiter would send to Redis as keys. */
const sent: string[] = []
const unwilling = standIn((_name, [, keys, ...args]) => {
  sent.push(...args.slice(0, Number(keys)))
  // Of one key, so that the store goes on asking.
  throw new Error('WRONGTYPE only looking')
})
const onRedis = createLimiter({
  name: 'fuzz',
  store: redisStore(unwilling),
  limits: [slidingLog({ limit: 1, window: '1h' })],
})
const MARKER = 'sluice:v1:blocked'
const keyOwners = new Map<string, string>()

async function keysFor(identity: string): Promise<string[]> {
  sent.length = 0
  await onRedis.consume(identity).catch(() => {})
  await onRedis.block(identity, { for: '1h' }).catch(() => {})
  return sent.filter((key) => key !== MARKER)
}

fuzz('keys', 'in Redis keys that differ stay apart, and none can choose its slot, match a glob or be long', {
  inputs: lookalikes,
  async check(pair) {
    // All that was ever tried is held against all else; of a million inputs, as much as memory should hold.
    if (keyOwners.size > 300_000) keyOwners.clear()
    for (const identity of pair) {
      if (identity === '') continue
      const keys = await keysFor(identity)
      must(keys.length === 2, 'a key for the state and one for the block', keys)
      for (const key of keys) {
        // One hash tag, which is the identity's own and never empty: it alone decides the slot.
        must(/^sluice:v1:\{key=[^{}]{1,96}\}:fuzz:[a-z0-9.]+$/.test(key), 'a key of that form', key)
        must(/^[\x21-\x7e]+$/.test(key) && !/[*?[\]\\"]/.test(key), 'a printable key, and no pattern', key)
        const owner = keyOwners.get(key) ?? identity
        keyOwners.set(key, owner)
        must(owner === identity, 'a key that is nobody else’s', [key, owner])
      }
    }
  },
})

const asked: { key: unknown } = { key: undefined }
const take = () => asked.key as never
const itself = createLimiter<unknown>({ name: 'fuzz', limit: 1, window: '1h' })
const limiters = [
  createLimiter<unknown>({ name: 'fuzz', limit: 1, window: '1h', key: take }),
  createLimiter<unknown>({ name: 'fuzz', limit: 1, window: '1h', key: byUser(take) }),
  createLimiter<unknown>({ name: 'fuzz', limit: 1, window: '1h', key: compose(take, () => 'x') }),
  createLimiter<unknown>({ name: 'fuzz', limit: 1, window: '1h', key: compose(() => 'x', take) }),
]
const guards = (['error', 'by-ip', 'skip'] as const).map((anonymous) =>
  createGuard<unknown>({ name: 'fuzz', limit: 1, window: '1h', anonymous, key: take }),
)

fuzz('keys', 'what is no key is INVALID_KEY, said clearly, and charges nobody', {
  inputs: fc.oneof(
    notAValue,
    number,
    text.map(
      (key): Make =>
        () =>
          key,
    ),
  ),
  async check(make) {
    const key = make()
    asked.key = key
    const isNumber = typeof key === 'bigint' || (typeof key === 'number' && Number.isFinite(key))
    const isKey = isNumber || (typeof key === 'string' && key !== '')
    for (const limiter of [itself, ...limiters]) {
      const said = await expectSaid(['INVALID_KEY'], () => limiter.consume(key))
      if (!isKey)
        must(/^policy "fuzz": key: expected a non-empty string or a number,( or \{ key: … \},)? got /.test(said), said)
      else if (limiter === itself) {
        must(said === '', said)
        must((await limiter.peek(String(key))).remaining === 0, 'the text of the key is the same key')
      }
    }
    for (const call of ['unblock', 'reset'] as const) {
      const said = await expectSaid(['INVALID_KEY'], () => itself[call](key as string))
      must((said === '') === isKey, said)
    }
    const isMissing = key === undefined || key === null || key === ''
    for (const [i, guard] of guards.entries()) {
      const said = await expectSaid(['INVALID_KEY'], () => guard(contextOf({ ip: '192.0.2.1' })))
      must((said === '') === (isKey || (isMissing && i > 0)), said)
    }
  },
})
