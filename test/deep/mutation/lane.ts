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
  #venue: Venue
  #checks: readonly { readonly check: Check; readonly scripts: ReadonlySet<string> }[] = []

  private constructor(server: RedisServer, venue: Venue) {
    this.#server = server
    this.#venue = venue
  }

  /** Starts a Redis, and runs all checks on the scripts as they are, to see that they hold and what they run. */
  static async open(): Promise<Lane> {
    const server = await startRedis()
    const lane = new Lane(server, makeVenue(server))
    try {
      lane.#checks = await sound(await allChecks(), lane.#venue)
    } catch (error) {
      await lane.close()
      throw error
    }
    return lane
  }

  async tryOn(mutant: Mutant): Promise<Outcome> {
    const started = performance.now()
    this.#venue.redis.load(mutant)
    const { by, told } = await this.#firstFailure(mutant)
    return { mutant, by, told, tookMs: Math.round(performance.now() - started) }
  }

  async close(): Promise<void> {
    await closeVenue(this.#venue)
    await this.#server.stop()
  }

  async #firstFailure(mutant: Mutant): Promise<{ by: string | undefined; told: string }> {
    for (const { check, scripts } of this.#checks) {
      if (![...scripts].some((script) => this.#venue.redis.isChanged(script))) continue
      const told = await this.#run(check, mutant)
      if (told === undefined) continue
      if (mayBeChance(check, told) && (await this.#run(check, mutant)) === undefined) continue
      return { by: check.name, told }
    }
    return { by: undefined, told: '' }
  }

  async #run(check: Check, mutant: Mutant): Promise<string | undefined> {
    const told = await failureOf(check, this.#venue)
    if (told === undefined || !/not available|no answer within|closed|ready/i.test(told)) return told
    // A store that replies made give up would refuse what the next mutant is asked, too.
    await closeVenue(this.#venue)
    // After a script that does not end there is no talking to that server any more.
    if (/no answer within|closed|ready/i.test(told)) await this.#server.restart()
    this.#venue = makeVenue(this.#server)
    this.#venue.redis.load(mutant)
    return told
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
async function sound(checks: readonly Check[], venue: Venue) {
  const all = []
  for (const check of checks) {
    venue.redis.ran.clear()
    let told = await failureOf(check, venue)
    if (told !== undefined && mayBeChance(check, told)) told = await failureOf(check, venue)
    if (told !== undefined) throw new Error(`nothing was changed, and yet it fails: ${check.name}: ${told}`)
    all.push({ check, scripts: new Set(venue.redis.ran) })
  }
  return all
}

async function failureOf(check: Check, venue: Venue): Promise<string | undefined> {
  try {
    return await check.run(venue)
  } catch (error) {
    if (!(error instanceof Error)) return String(error)
    // Why the store was not available says whether its server can be talked to any more.
    return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
  }
}

function makeVenue(server: RedisServer): Venue {
  const redis = new MutatedRedis(server.url)
  const clock = new Clock()
  // It is the scripts that have to answer, and what they know is deleted past the store.
  const options = { timeoutMs: TIMEOUT_MS, denyCache: false }
  return {
    redis,
    clock,
    store: insist(redisStore(redis.client(), { ...options, clock: clock.read })),
    timed: insist(redisStore(redis.client(), options)),
  }
}

async function closeVenue({ redis, store, timed }: Venue): Promise<void> {
  redis.close()
  await Promise.all([store.close(), timed.close()])
}
