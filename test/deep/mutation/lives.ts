import type { Limit } from '@sluice/core'
import type { MutatedRedis } from './mutated-redis.js'
import type { Policy } from './scenario.js'

/** How much longer than by its own clock a store lets states live when it is given another. */
const SLACK_MS = 3_600_000
/** How much longer than they must keys may live where that saves setting their expiry again. */
const LINGER_MS = 10_000
/** Between a run and the look at what is left of a life. */
const PASSED_MS = 30
/** An expiry that no script sets, in ms since 1970: where it still stands after a run, that run set none. */
const UNTOUCHED = '4102444800000'

/** How long, by the clock at `now`, the state under a key can have to live at most. */
function longestLife(key: string, now: number, policies: readonly Policy[]): number {
  if (key === 'sluice:v1:blocked') return 2000
  // A shard of the index of blocks in which nothing has changed yet.
  if (key.includes('}:.store:')) return 86_400_000
  const [policy, id = ''] = key.split('}:')[1]?.split(':') ?? []
  const ids = policies.find(({ name }) => name === policy)?.limits?.map(idOf) ?? []
  // Limits that share a key live as long as the longest of them, and linger. A log of several says so itself.
  if (!ids.includes(id) && /^(bucket|sliding|fixed|opened|joint)\b/.test(id)) {
    return LINGER_MS + Math.max(...ids.map((own) => lifeOf(own, key, now)))
  }
  return lifeOf(id, key, now)
}

function idOf({ resolve, limit, window }: Limit): string {
  return resolve('', limit as number, window as number).id
}

function lifeOf(id: string, key: string, now: number): number {
  const [kernel = '', ...numbers] = id.split('.')
  const [limit = 0, windowMs = 0, third = 0] = numbers.map(Number)
  switch (kernel) {
    case 'bucket': {
      const drainedMs = Math.ceil(third / limit) * windowMs
      return drainedMs + Math.min(LINGER_MS, drainedMs)
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
    case 'opened':
    case 'concurrency':
      return windowMs
    case 'block':
      return 2000
    default:
      throw new Error(`what keeps ${key}?`)
  }
}

/** Looks after every run how long its keys have to live by the clock of the test, and forgets those whose time is over. */
export class Lives {
  readonly #redis: MutatedRedis
  readonly #now: () => number
  readonly #ends = new Map<string, number>()
  readonly #policies: readonly Policy[]
  #looks: Promise<void>[] = []
  #wrong: string | undefined

  constructor(redis: MutatedRedis, now: () => number, policies: readonly Policy[]) {
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

  /** What is wrong with the life of a key, after everything sent. */
  async finish(): Promise<string | undefined> {
    const looks = this.#looks
    this.#looks = []
    await Promise.all(looks)
    return this.#wrong
  }

  /** Before a run: forgets what is over, and marks what is not. */
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
    const longest = longestLife(key, now, this.#policies)
    if (left === -1) this.#wrong ??= `${key} would stay for ever`
    else if (life > longest) this.#wrong ??= `${key} stays ${life} ms, ${longest} would do`
    this.#ends.set(key, now + life + PASSED_MS)
  }
}
