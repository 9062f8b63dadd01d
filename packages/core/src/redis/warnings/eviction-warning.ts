import type { StoreWarning, Warnings } from '../../util/warnings.js'

/**
 * Warns, once per store, of a Redis that may evict: a client that makes up identities then decides which counts and blocks of
 * others are lost. Does not warn where Redis does not show its settings.
 */
export class EvictionWarning {
  readonly #warnings: Warnings<StoreWarning>
  #isWarned = false

  constructor(warnings: Warnings<StoreWarning>) {
    this.#warnings = warnings
  }

  /** Call it whenever a master is connected: it may be another one, or have other settings. */
  async connected(node: string, info: (section: string) => Promise<unknown>): Promise<void> {
    if (this.#isWarned) return
    const memory = await textOf(info)
    const [, policy] = /^maxmemory_policy:([a-z-]+)/m.exec(memory) ?? []
    // Without a maximum nothing is evicted.
    if (this.#isWarned || !/^maxmemory:[1-9]/m.test(memory) || !policy || policy === 'noeviction') return
    this.#isWarned = true
    this.#warnings.emit(
      'SLUICE_EVICTION',
      `Redis (${node}) evicts keys when it is full (maxmemory-policy ${policy}): clients that make up identities can push ` +
        'out the counts and blocks of others. Give Sluice a Redis of its own with maxmemory-policy noeviction, and enough ' +
        'memory for the identities of the longest window',
    )
  }
}

async function textOf(info: (section: string) => Promise<unknown>): Promise<string> {
  try {
    return String(await info('memory'))
  } catch {
    // Not permitted, or not connected any more: it is not needed for anything else.
    return ''
  }
}
