import type { StoreWarning, Warnings } from '../../util/warnings.js'

/** Refusals of a command by Redis 6.2, 7.0 and later, in a script and outside. */
const REFUSED = /NOPERM|ACL failure|The user executing the script can|unknown command/i

/** Clients that have caused a warning: once each, however many stores they have. */
const warnedClients = new WeakSet<object>()

/** The warnings of one store on Redis, except those of outages. */
export class RedisWarnings {
  readonly #emit: Warnings<StoreWarning>['emit']
  readonly #warned = new Set<StoreWarning>()

  constructor({ emit }: Warnings<StoreWarning>) {
    this.#emit = emit
  }

  /** `max`: the maximum blocks and bans that a process knows. */
  blocksFull(max: number): void {
    this.#emit(
      'SLUICE_BLOCKS_FULL',
      `redisStore: there are more blocks and bans than the ${max} that a process knows: those beyond end where Redis ` +
        'loses them. Block networks, or end blocks that are not needed',
    )
  }

  /** Warns of restored entries. Lost ends alone cause no warning. */
  restored(entries: readonly { readonly isEnded: boolean }[], one: string, several: string): void {
    const count = entries.filter(({ isEnded }) => !isEnded).length
    if (count === 0) return
    this.#emit(
      'SLUICE_BLOCKS_RESTORED',
      `Redis had lost ${count === 1 ? one : `${count} ${several}`} that this process knew: written again. Look for ` +
        'a flush, an eviction, or a failover to a replica that lagged',
    )
  }

  noFailoverDetector(client: object): void {
    if (warnedClients.has(client)) return
    warnedClients.add(client)
    this.#emit(
      'SLUICE_NO_FAILOVER_DETECTOR',
      'redisStore: after a failover by command, a Sentinel client of ioredis stays on the demoted master for some 10 s, and ' +
        'what is counted there is lost: give the client failoverDetector: true',
    )
  }

  /**
   * Warns once of a Redis that decides but does not let this process write the index of blocks. No decision fails
   * because of that, so nothing else would show it.
   */
  indexFailed(error: Error): void {
    if (!REFUSED.test(`${error.message} ${(error.cause as Error | undefined)?.message}`)) return
    this.#once(
      'SLUICE_BLOCKS_DENIED',
      'Redis does not let its user keep the index of blocks: blocks and bans end with an outage, and block() and unblock() ' +
        'fail. Grant the user what SECURITY.md lists',
    )
  }

  /**
   * Warns once of a Redis that may evict keys: a client that makes up identities could then push out counts and blocks
   * of others. Does not warn if Redis does not show its settings. Call it whenever a master is connected, as it may be
   * a different one or have different settings.
   */
  async connected(node: string, info: (section: string) => Promise<unknown>): Promise<void> {
    if (this.#warned.has('SLUICE_EVICTION')) return
    // The command may be forbidden or the connection lost. Nothing else needs the reply.
    const memory = String(await info('memory').catch(() => ''))
    const [, policy] = /^maxmemory_policy:([a-z-]+)/m.exec(memory) ?? []
    // Without maxmemory, nothing is evicted.
    if (!/^maxmemory:[1-9]/m.test(memory) || !policy || policy === 'noeviction') return
    this.#once(
      'SLUICE_EVICTION',
      `Redis (${node}) evicts keys when it is full (maxmemory-policy ${policy}): clients that make up identities can push ` +
        'out the counts and blocks of others. Give Sluice a Redis of its own with maxmemory-policy noeviction, and enough ' +
        'memory for the identities of the longest window',
    )
  }

  #once(code: StoreWarning, message: string): void {
    if (this.#warned.has(code)) return
    this.#warned.add(code)
    this.#emit(code, message)
  }
}
