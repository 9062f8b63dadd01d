import { types } from 'node:util'
import {
  byHeader,
  byUser,
  compose,
  createLimiter,
  type KeyFunction,
  keyed,
  memoryStore,
  redisStore,
  SluiceError,
  type Store,
  slidingLog,
} from '@sluice/core'
import { createGuard, type Outcome } from '@sluice/core/http'
import { BANS } from '@sluice/core/store'
import fc from 'fast-check'
import { contextOf } from '../../support/context.js'
import { standIn } from '../../support/stand-in.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { lookalikes, type Make, notAValue, number, text } from './support/hostile.js'

/** A memory store that records the identities of its requests. */
function shownStore(): { store: Store; identities: string[] } {
  const { decide, ...rest } = bound(memoryStore())
  const identities: string[] = []
  const store: Store = {
    ...rest,
    decide(ask) {
      identities.push(...ask.identities)
      return decide(ask)
    },
  }
  return { store, identities }
}

function bound(store: Store): Store {
  return {
    decide: (ask) => store.decide(ask),
    reset: (...args) => store.reset(...args),
    [BANS]: store[BANS],
    close: () => store.close(),
  }
}

const memory = shownStore()
const inMemory = createLimiter({ name: 'fuzz', store: memory.store, limit: 1, window: '1h' })

fuzz('keys', 'different keys have separate quotas in memory, of a bounded size', {
  inputs: lookalikes,
  async check([a, b]) {
    if (a === '' || b === '' || a === b) return
    memory.identities.length = 0
    must((await inMemory.consume(a)).allowed, 'one of two keys is charged')
    must((await inMemory.peek(b)).remaining === 1, 'the other key is not charged')
    await inMemory.block(b, { for: '1h' })
    must((await inMemory.peek(a)).reason === 'limited', 'the other key is blocked, and not this one')
    await inMemory.unblock(b)
    await inMemory.reset(b)
    must(!(await inMemory.consume(a)).allowed, 'the other key is reset, and not this one')
    await inMemory.reset(a)
    must((await inMemory.peek(a)).remaining === 1, 'forgotten')
    for (const identity of memory.identities)
      must(identity.length <= 'key='.length + 256, 'a bounded key', identity.length)
  },
})

/** All keys that one call of a limiter would send to Redis. */
const sent: string[] = []
const unwilling = standIn((_name, [, keys, ...args]) => {
  sent.push(...args.slice(0, Number(keys)))
  // An error of one key, so that the store stays available.
  throw new Error('WRONGTYPE only looking')
})
const onRedis = createLimiter({
  name: 'fuzz',
  store: redisStore(unwilling),
  limits: [slidingLog({ limit: 1, window: '1h' })],
})
/** The marker of blocks and their index have no identity in their names. */
const SHARED = /^sluice:v1:(blocked|\{blocks\.\d+\}:\.store:(index|changes))$/
const keyOwners = new Map<string, string>()

async function keysFor(identity: string): Promise<string[]> {
  sent.length = 0
  await onRedis.consume(identity).catch(() => {})
  await onRedis.block(identity, { for: '1h' }).catch(() => {})
  return sent.filter((key) => !SHARED.test(key))
}

fuzz('keys', 'different keys stay separate in Redis, and none can choose its slot, match a glob or be long', {
  inputs: lookalikes,
  async check(pair) {
    // Each key is compared with all earlier ones, up to a number that fits in memory.
    if (keyOwners.size > 300_000) keyOwners.clear()
    for (const identity of pair) {
      if (identity === '') continue
      const keys = await keysFor(identity)
      must(keys.length === 3, 'a key for the state, one for the block and one for strikes', keys)
      for (const key of keys) {
        // One hash tag around the identity, never empty: it alone determines the slot.
        must(/^sluice:v1:\{key=[^{}]{1,96}\}:fuzz:[a-z0-9.]+$/.test(key), 'a key of that form', key)
        must(/^[\x21-\x7e]+$/.test(key) && !/[*?[\]\\"]/.test(key), 'a printable key, and no pattern', key)
        const owner = keyOwners.get(key) ?? identity
        keyOwners.set(key, owner)
        must(owner === identity, 'a key of its own', [key, owner])
      }
    }
  },
})

/** A part of a key: its source, the name there, and its value. */
interface Part {
  readonly source: 'header' | 'keyed' | 'user' | 'own'
  readonly name: string
  readonly value: string
}

/** Names of headers, with more characters that have a meaning in a kind than any real name has. */
const token = fc.string({
  unit: fc.constantFrom(...'!#$%&*+.^_`|~-', 'a', 'A', '0', 'ip', '%2B', 'x+ip', 'header'),
  minLength: 1,
  maxLength: 4,
})
const name = fc.constantFrom('account', 'Account', 'a', 'b', 'header_x', 'ip-key')
const parts: fc.Arbitrary<readonly Part[]> = fc.array(
  fc.oneof(
    fc.record({ source: fc.constant('header' as const), name: token, value: text }),
    fc.record({ source: fc.constantFrom('keyed' as const, 'user' as const, 'own' as const), name, value: text }),
  ),
  { minLength: 1, maxLength: 3 },
)

function keyOfPart({ source, name, value }: Part): KeyFunction<unknown> {
  if (source === 'header') return byHeader(name, { secret: false })
  const key = () => value
  return source === 'keyed' ? keyed(name, key) : source === 'user' ? byUser(key) : key
}

/** The sources, names and values of an identity, which no other identity may share. */
function ownOf(parts: readonly Part[]): string {
  const named = { header: (part: Part) => part.name.toLowerCase(), keyed: (part: Part) => part.name }
  return JSON.stringify(
    parts.map((part) => [part.source, named[part.source as keyof typeof named]?.(part), part.value]),
  )
}

const unwillingStore = redisStore(unwilling)

/** The identity of a request in memory and in Redis. */
async function identityOf(parts: readonly Part[]) {
  const sources = parts.filter(({ source }) => source === 'header')
  const headers = new Map(sources.map(({ name, value }) => [name.toLowerCase(), value]))
  const header = (name: string) => headers.get(name)
  const key = compose(...parts.map(keyOfPart))
  memory.identities.length = 0
  sent.length = 0
  const outcomes = [memory.store, unwillingStore].map((store) =>
    createGuard<unknown>({ name: 'fuzz', store, limit: 9, window: '1h', key })(contextOf({ header })),
  )
  const [{ verdict }] = (await Promise.all(outcomes)) as [Outcome, Outcome]
  return { text: memory.identities[0], redisKey: sent.find((key) => !SHARED.test(key)), key: verdict?.limits[0]?.key }
}

fuzz('keys', 'identities of different kinds or values are separate in memory and Redis, and verdicts report them', {
  inputs: fc.tuple(parts, parts),
  dearness: 5,
  async check(pair) {
    // Parts of one header have one value.
    const [one, other] = pair.map((given) => {
      const values = new Map(given.map((part) => [`${part.source} ${part.name.toLowerCase()}`, part.value]))
      return given.map((part) =>
        part.source === 'header' ? { ...part, value: values.get(`header ${part.name.toLowerCase()}`) as string } : part,
      )
    }) as [Part[], Part[]]
    if ([...one, ...other].some(({ value }) => value === '')) return
    const [a, b] = [await identityOf(one), await identityOf(other)]
    const isSame = ownOf(one) === ownOf(other)
    must((a.text === b.text) === isSame, 'an identity in memory of its own', [a.text, b.text])
    must((a.redisKey === b.redisKey) === isSame, 'a key in Redis of its own', [a.redisKey, b.redisKey])
    must(/^sluice:v1:\{[\x21-\x7e]+\}:fuzz:/.test(a.redisKey ?? ''), 'a printable key', a.redisKey)
    const { kind = '', value } = a.key ?? {}
    must(kind.split('+').length === one.length, 'a kind of as many parts', kind)
    const values = one.map((part) => part.value)
    const reported = typeof value === 'string' ? [value] : value
    const isHashed = typeof value === 'string' && /^#.{22}$/s.test(value)
    if (!isHashed) must(JSON.stringify(reported) === JSON.stringify(values), 'the values as they were', value)
  },
})

function isKeyValue(key: unknown): boolean {
  const isNumber = typeof key === 'bigint' || (typeof key === 'number' && Number.isFinite(key))
  return isNumber || (typeof key === 'string' && key !== '')
}

const given: { key: unknown } = { key: undefined }
const take = () => given.key as never
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

fuzz('keys', 'an invalid key is a clear INVALID_KEY error, and charges nothing', {
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
    given.key = key
    const isKey = isKeyValue(key)
    // Key functions may return promises; a key itself may not be one.
    const isKeyOfFunction = isKeyValue(types.isPromise(key) ? await key : key)
    for (const limiter of [itself, ...limiters]) {
      const message = await expectSaid(['INVALID_KEY'], () => limiter.consume(key))
      if (!(limiter === itself ? isKey : isKeyOfFunction))
        must(
          /^policy "fuzz": key: expected a non-empty string or a number,( or \{ key: … \},)? got /.test(message),
          message,
        )
      else if (limiter === itself) {
        must(message === '', message)
        must((await limiter.peek(String(key))).remaining === 0, 'the text of the key is the same key')
      }
    }
    for (const call of ['unblock', 'reset'] as const) {
      const message = await expectSaid(['INVALID_KEY'], () => itself[call](key as string))
      must((message === '') === isKey, message)
    }
    const isMissing = key === undefined || key === null || key === ''
    for (const [i, guard] of guards.entries()) {
      const message = await expectSaid(['INVALID_KEY'], async () => {
        const { reply } = await guard(contextOf({ ip: '192.0.2.1' }))
        if (reply?.status === 400) throw new SluiceError('INVALID_KEY', 'answered 400')
      })
      must((message === '') === (isKeyOfFunction || (isMissing && i > 0)), message)
    }
  },
})
