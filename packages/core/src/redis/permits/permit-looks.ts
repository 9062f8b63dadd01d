import type { Plan } from '../../store/store.js'
import { countsPermits } from '../../store/units.js'
import { groupBy } from '../../util/group-by.js'
import { cellSuffix, keyStart } from '../scripts/keys.js'
import { RUN, run } from '../scripts/run.js'
import { permitsScript } from '../scripts/scripts.generated.js'
import type { RedisBase } from '../slots/base.js'

interface Look {
  readonly key: string
  /** In a cluster, a master that accepts undeclared keys. */
  readonly node: string | undefined
  /** Maximum held permits that leave room for the cost. */
  readonly maxHeld: number
  readonly resolve: (mayBeFree: boolean) => void
}

/** Maximum keys of one script. Redis does nothing else meanwhile. */
const MAX_KEYS = 500
const NONE = '0'.charCodeAt(0)

/** Checks whether permits may be free. The checks of one turn of the event loop are one script per master. */
export class PermitLooks {
  readonly #options: RedisBase
  #waiting: Look[] = []

  constructor(options: RedisBase) {
    this.#options = options
  }

  /** Whether a plan's permits may have room for a cost; true if that is not known. Never rejects. */
  async mayHave(plan: Plan, identities: readonly string[], cost: number): Promise<boolean> {
    const { prefix, slots, breaker, crossSlots } = this.#options
    const looks = plan.cells.map((cell) => {
      if (!countsPermits(cell)) return true
      const identity = identities[cell.identity] as string
      const slot = slots.of(identity)
      const node = crossSlots?.nodeFor(slot, identity)
      if (breaker.causeFor(slot) || (slots.isCluster && node === undefined)) return true
      const maxHeld = Math.min(...cell.limits.map(({ capacity }) => capacity)) - cost
      const key = keyStart(prefix, identity) + cellSuffix(plan.policy, cell)
      return new Promise<boolean>((resolve) => {
        if (this.#waiting.push({ key, node, maxHeld, resolve }) === 1) setImmediate(() => this.#flush())
      })
    })
    return (await Promise.all(looks)).every((mayBeFree) => mayBeFree)
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const [node, looks] of groupBy(waiting, (look) => look.node)) {
      for (let i = 0; i < looks.length; i += MAX_KEYS) this.#send(looks.slice(i, i + MAX_KEYS), node)
    }
  }

  async #send(looks: readonly Look[], node: string | undefined): Promise<void> {
    const { connection, timeoutMs, clock } = this.#options
    const keys = looks.map(({ key }) => key)
    const args = [clock ? String(clock()) : '', ...looks.map(({ maxHeld }) => String(maxHeld))]
    const encoded = node === undefined ? { keys, args } : { keys: [], args: [...args, ...keys] }
    // Failures count as room: the decision that follows finds the cause.
    const found = await run(connection, timeoutMs, permitsScript, () => encoded, { ...RUN, node }).catch(
      () => undefined,
    )
    for (const [i, { resolve }] of looks.entries()) resolve(!(found instanceof Uint8Array && found[i] === NONE))
  }
}
