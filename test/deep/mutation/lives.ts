import type { Limit } from '@sluice/core'
import type { MutatedRedis } from './mutated-redis.js'
import type { Policy } from './scenario.js'

/** The additional life of states in a store with a clock other than that of Redis. */
const SLACK_MS = 3_600_000
/** The additional life that keys may have to save setting their expiry again. */
const LINGER_MS = 10_000
const DAY_MS = 86_400_000
/** The longest time between an execution and the reading of a key's remaining life. */
const PASSED_MS = 30
/** An expiry that no script sets, in ms since 1970: where it remains after an execution, that execution set none. */
const UNTOUCHED = '4102444800000'

/** The longest life, by the clock at `now`, that the state under a key can need. `owes`: whether limits may be in debt. */
function longestLife(key: string, now: number, policies: readonly Policy[], owes: boolean): number {
  if (key === 'sluice:v1:blocked') return 2000
  // A shard of the index of blocks without changes.
  if (key.includes('}:.store:')) return 86_400_000
  const [policy, id = ''] = key.split('}:')[1]?.split(':') ?? []
  const ids = policies.find(({ name }) => name === policy)?.limits?.map(idOf) ?? []
  // A shared key lives as long as its longest limit, and lingers. A log of several limits has its own rule.
  if (!ids.includes(id) && /^(bucket|sliding|fixed|opened|joint|day|week|month)\b/.test(id)) {
    return LINGER_MS + Math.max(...ids.map((own) => lifeOf(own, key, now, owes)))
  }
  return lifeOf(id, key, now, owes)
}

function idOf({ resolve, limit, window }: Limit): string {
  return resolve('', limit as number, window as number).id
}

function lifeOf(id: string, key: string, now: number, owes: boolean): number {
  const [kernel = '', ...numbers] = id.split('.')
  const [limit = 0, windowMs = 0, third = 0] = numbers.map(Number)
  switch (kernel) {
    case 'bucket': {
      const drainedMs = Math.ceil(third / limit) * windowMs
      return (owes ? 2 : 1) * drainedMs + Math.min(LINGER_MS, drainedMs)
    }
    case 'sliding': {
      const segmentMs = windowMs / third
      return windowMs + segmentMs - (now % segmentMs)
    }
    case 'log': {
      const longest = Math.max(...numbers.filter((_, i) => i % 2 === 1).map(Number))
      return longest + Math.max(longest / 10, Math.min(LINGER_MS, longest))
    }
    case 'fixed':
      return windowMs - (now % windowMs)
    case 'day':
      return DAY_MS
    case 'week':
      return 7 * DAY_MS
    case 'month':
      return 31 * DAY_MS
    case 'opened':
    case 'concurrency':
      return windowMs
    case 'block':
      return 2000
    default:
      throw new Error(`unknown key: ${key}`)
  }
}

/** Reads the lives of keys after every execution, by the clock of the test, and deletes those whose time has ended. */
export class Lives {
  readonly #redis: MutatedRedis
  readonly #now: () => number
  readonly #ends = new Map<string, number>()
  readonly #policies: readonly Policy[]
  readonly #owes: boolean
  #looks: Promise<void>[] = []
  #wrong: string | undefined

  constructor(redis: MutatedRedis, now: () => number, policies: readonly Policy[], owes: boolean) {
    this.#owes = owes
    this.#policies = policies
    this.#redis = redis
    this.#now = now
    redis.onRun = (keys) => {
      for (const key of new Set(keys)) this.#looks.push(this.#look(key))
    }
  }

  stop(): void {
    this.#redis.onRun = undefined
  }

  /** The failure of the life of a key after all commands, if any. */
  async finish(): Promise<string | undefined> {
    const looks = this.#looks
    this.#looks = []
    await Promise.all(looks)
    return this.#wrong
  }

  /** Before an execution, deletes ended keys and marks the others. */
  forget(): void {
    for (const [key, ends] of this.#ends) {
      if (ends > this.#now()) this.#redis.call('PEXPIREAT', key, UNTOUCHED)
      else {
        this.#ends.delete(key)
        this.#redis.call('DEL', key)
      }
    }
  }

  async #look(key: string): Promise<void> {
    const now = this.#now()
    const [expires, left] = await Promise.all([this.#redis.call('PEXPIRETIME', key), this.#redis.call('PTTL', key)])
    if (left === -2) this.#ends.delete(key)
    if (left === -2 || String(expires) === UNTOUCHED) return
    const life = Number(left) - SLACK_MS
    const longest = longestLife(key, now, this.#policies, this.#owes)
    if (left === -1) this.#wrong ??= `${key} would stay for ever`
    else if (life > longest) this.#wrong ??= `${key} stays ${life} ms, ${longest} would do`
    this.#ends.set(key, now + life + PASSED_MS)
  }
}
