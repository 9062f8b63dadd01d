import { redisStore } from '@sluice/core'
import { Clock } from '../../contract/store-under-test.js'
import { insist } from '../../support/outages.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import type { Check, Venue } from './check.js'
import { allChecks } from './checks.js'
import type { Mutant } from './mutants.js'
import { MutatedRedis } from './mutated-redis.js'

/** The outcome of a mutant: the check that noticed it and its failure, or neither. */
export interface Outcome {
  readonly mutant: Mutant
  readonly by: string | undefined
  readonly failure: string
  readonly tookMs: number
}

/** A script without a reply by then never replies. */
const TIMEOUT_MS = 1000

/** A Redis, and the checks that try mutants on it, one after the other. */
export class Lane {
  readonly #server: RedisServer
  #redis: MutatedRedis
  #checks: readonly { readonly check: Check; readonly scripts: ReadonlySet<string> }[] = []

  private constructor(server: RedisServer) {
    this.#server = server
    this.#redis = new MutatedRedis(server.url)
  }

  /** Starts a Redis, and runs all checks on the original scripts, to see that they pass and which scripts they execute. */
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
    const { by, failure } = await this.#firstFailure(mutant)
    return { mutant, by, failure, tookMs: Math.round(performance.now() - started) }
  }

  async close(): Promise<void> {
    this.#redis.close()
    await this.#server.stop()
  }

  async #firstFailure(mutant: Mutant): Promise<{ by: string | undefined; failure: string }> {
    for (const { check, scripts } of this.#checks) {
      if (![...scripts].some((script) => this.#redis.isChanged(script))) continue
      const failure = await this.#run(check, mutant)
      if (failure === undefined) continue
      if (mayBeChance(check, failure) && (await this.#run(check, mutant)) === undefined) continue
      return { by: check.name, failure }
    }
    return { by: undefined, failure: '' }
  }

  async #run(check: Check, mutant: Mutant): Promise<string | undefined> {
    const failure = await failureOf(check, this.#redis)
    if (failure === undefined || !/not available|no answer within|closed|ready/i.test(failure)) return failure
    this.#redis.close()
    // A server with an endless script does not reply.
    if (/no answer within|closed|ready/i.test(failure) || !(await this.#replies())) await this.#server.restart()
    this.#redis = new MutatedRedis(this.#server.url)
    this.#redis.load(mutant)
    return failure
  }

  /** False while a script runs on, as the server replies that it is busy. */
  #replies(): Promise<boolean> {
    return this.#server.call('PING').then(
      () => true,
      () => false,
    )
  }
}

/**
 * On a busy machine, a check of times can fail by chance, and a decision come too late. A check with several batches of one
 * instant can fail, too: they overtake each other when they meet a block and are sent again. Two failures in a row are no
 * chance.
 */
function mayBeChance({ name }: Check, failure: string): boolean {
  return /^(server's time|lives|batches):|no answer within|not available/.test(`${name}\n${failure}`)
}

/** The checks with the scripts that each of them executes. */
async function checksThatPass(checks: readonly Check[], redis: MutatedRedis) {
  const all = []
  for (const check of checks) {
    redis.ran.clear()
    let failure = await failureOf(check, redis)
    if (failure !== undefined && mayBeChance(check, failure)) failure = await failureOf(check, redis)
    if (failure !== undefined) throw new Error(`the check fails on the original scripts: ${check.name}: ${failure}`)
    all.push({ check, scripts: new Set(redis.ran) })
  }
  return all
}

async function failureOf(check: Check, redis: MutatedRedis): Promise<string | undefined> {
  const clock = new Clock()
  // Stores restore their blocks after a flush, so each check has its own stores.
  let stores: Awaited<ReturnType<typeof storesOn>> | undefined
  try {
    await redis.call('FLUSHALL')
    stores = await storesOn(redis, clock)
    return await check.run({ redis, clock, ...stores })
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    // The cause shows whether the server still replies.
    return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
  } finally {
    await Promise.all(Object.values(stores ?? {}).map((store) => store.close()))
  }
}

/** Waits for ready stores, as the first decisions of a store may be sent after others of the same batch. */
async function storesOn(redis: MutatedRedis, clock: Clock): Promise<Pick<Venue, 'store' | 'elsewhere' | 'timed'>> {
  // Without a deny cache, as scripts have to decide, and their state is deleted without the store.
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
