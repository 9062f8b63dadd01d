import { probeKey } from '../../redis/health/probing.js'
import { keyStart } from '../../redis/scripts/keys.js'
import { runAt } from '../../redis/scripts/run.js'
import type { RedisBase } from '../../redis/slots/base.js'
import type { KeyedScripts, ScriptKey, StoreScript } from '../../store/keyed-scripts.js'

/** Runs scripts of our other packages, on the server of their key and while it is available. */
export class RedisKeyedScripts implements KeyedScripts {
  readonly #base: RedisBase

  constructor(base: RedisBase) {
    this.#base = base
  }

  async run(script: StoreScript, { identity, policy, part }: ScriptKey, args: readonly string[]): Promise<unknown> {
    const { prefix, slots, breaker } = this.#base
    slots.requireServer(identity)
    const slot = slots.of(identity)
    try {
      const reply = await runAt(this.#base, script, [`${keyStart(prefix, identity)}}:${policy}:${part}`], args)
      breaker.succeeded(slot)
      return reply
    } catch (error) {
      breaker.failed(slot, error as Error, probeKey(prefix, identity))
      throw error
    }
  }
}
