import { redisStore } from '@sluice/core'
import { Clock } from '../../contract/store-under-test.js'
import { insist } from '../../support/outages.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import type { Check, Venue } from './check.js'
import { allChecks } from './checks.js'
import type { Mutant } from './mutants.js'
import { MutatedRedis } from './mutated-redis.js'

/** What became of a mutant: which check noticed it and how, or that none did. */
export interface Outcome {
  readonly mutant: Mutant
  readonly by: string | undefined
  readonly told: string
  readonly tookMs: number
}

/** A script that has not answered by then never will. */
const TIMEOUT_MS = 1000

/** A Redis, and the checks to try mutants on it with, one after the other. */
export class Lane {
  readonly #server: RedisServer
  #redis: MutatedRedis
  #checks: readonly { readonly check: Check; readonly scripts: ReadonlySet<string> }[] = []

  private constructor(server: RedisServer) {
    this.#server = server
    this.#redis = new MutatedRedis(server.url)
  }

  /** Starts a Redis, and runs all checks on the scripts as they are, to see that they hold and what they run. */
  static async open(): Promise<Lane> {
    const server = await startRedis()
    const lane = new Lane(server)
    try {
      lane.#checks = await checksThatPass(await allChecks(), lane.#redis)
    } catch (error) {
      await lane.close()
      throw error
    }
    return lane
  }

  async tryOn(mutant: Mutant): Promise<Outcome> {
    const started = performance.now()
    this.#redis.load(mutant)
    const { by, told } = await this.#firstFailure(mutant)
    return { mutant, by, told, tookMs: Math.round(performance.now() - started) }
  }

  async close(): Promise<void> {
    this.#redis.close()
    await this.#server.stop()
  }

  async #firstFailure(mutant: Mutant): Promise<{ by: string | undefined; told: string }> {
    for (const { check, scripts } of this.#checks) {
      if (![...scripts].some((script) => this.#redis.isChanged(script))) continue
      const told = await this.#run(check, mutant)
      if (told === undefined) continue
      if (mayBeChance(check, told) && (await this.#run(check, mutant)) === undefined) continue
      return { by: check.name, told }
    }
    return { by: undefined, told: '' }
  }

  async #run(check: Check, mutant: Mutant): Promise<string | undefined> {
    const told = await failureOf(check, this.#redis)
    if (told === undefined || !/not available|no answer within|closed|ready/i.test(told)) return told
    this.#redis.close()
    // After a script that does not end there is no talking to that server any more.
    if (/no answer within|closed|ready/i.test(told) || !(await this.#replies())) await this.#server.restart()
    this.#redis = new MutatedRedis(this.#server.url)
    this.#redis.load(mutant)
    return told
  }

  /** Not where a script runs on: the server says that it is busy. */
  #replies(): Promise<boolean> {
    return this.#server.call('PING').then(
      () => true,
      () => false,
    )
  }
}

/**
 * A machine that is busy elsewhere can make a check fail that looks at the time, or have batches of one instant
 * overtake each other where they come upon a block and are sent again; not twice, though.
 */
function mayBeChance({ name }: Check, told: string): boolean {
  return /^(server's time|lives|batches):|no answer within/.test(`${name}\n${told}`)
}

/** The checks with the scripts that each of them runs. */
async function checksThatPass(checks: readonly Check[], redis: MutatedRedis) {
  const all = []
  for (const check of checks) {
    redis.ran.clear()
    let told = await failureOf(check, redis)
    if (told !== undefined && mayBeChance(check, told)) told = await failureOf(check, redis)
    if (told !== undefined) throw new Error(`nothing was changed, and yet it fails: ${check.name}: ${told}`)
    all.push({ check, scripts: new Set(redis.ran) })
  }
  return all
}

async function failureOf(check: Check, redis: MutatedRedis): Promise<string | undefined> {
  const clock = new Clock()
  // Stores remember blocks, and write them again after a flush: so each check has stores of its own.
  let stores: Awaited<ReturnType<typeof storesOn>> | undefined
  try {
    await redis.call('FLUSHALL')
    stores = await storesOn(redis, clock)
    return await check.run({ redis, clock, ...stores })
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    // Why the store was not available says whether its server can be talked to any more.
    return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
  } finally {
    await Promise.all(Object.values(stores ?? {}).map((store) => store.close()))
  }
}

/** Ready, as the first decisions of a store may come after others of the same batch. */
async function storesOn(redis: MutatedRedis, clock: Clock): Promise<Pick<Venue, 'store' | 'elsewhere' | 'timed'>> {
  // It is the scripts that have to answer, and what they know is deleted past the store.
  const options = { timeout: TIMEOUT_MS, denyCache: false }
  const make = async (own: object) => {
    const store = redisStore(redis.client(), { ...options, ...own })
    await store.ready()
    return insist(store)
  }
  return {
    store: await make({ clock: clock.read }),
    elsewhere: await make({ clock: clock.read }),
    timed: await make({}),
  }
}
