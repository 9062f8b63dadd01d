import type { Connection } from '../clients/connection.js'
import { run } from '../scripts/run.js'
import { permitsScript } from '../scripts/scripts.generated.js'

export interface PermitLooksOptions {
  readonly connection: Connection
  readonly timeoutMs: number
  readonly clock: (() => number) | undefined
}

interface Look {
  readonly key: string
  readonly most: number
  readonly resolve: (mayBeFree: boolean) => void
}

/** Most keys of one script: Redis does nothing else meanwhile. */
const MOST_KEYS = 500
const NONE = '0'.charCodeAt(0)

/** Whether permits may be free: all that is asked in one turn of the event loop is one script for each master. */
export class PermitLooks {
  readonly #options: PermitLooksOptions
  #waiting = new Map<string | undefined, Look[]>()

  constructor(options: PermitLooksOptions) {
    this.#options = options
  }

  /** `most`: how many may be held so that there is room. `node`: of a cluster, a master that takes undeclared keys. Never rejects. */
  mayBeFree(key: string, most: number, node: string | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#flush())
      const looks = this.#waiting.get(node)
      if (looks) looks.push({ key, most, resolve })
      else this.#waiting.set(node, [{ key, most, resolve }])
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [node, looks] of waiting) {
      for (let i = 0; i < looks.length; i += MOST_KEYS) this.#send(looks.slice(i, i + MOST_KEYS), node)
    }
  }

  async #send(looks: readonly Look[], node: string | undefined): Promise<void> {
    const { connection, timeoutMs, clock } = this.#options
    const keys = looks.map(({ key }) => key)
    const args = [clock ? String(clock()) : '', ...looks.map(({ most }) => String(most))]
    const encoded = node === undefined ? { keys, args } : { keys: [], args: [...args, ...keys] }
    // What fails is left to decisions, which find out why.
    const found = await run(connection, timeoutMs, permitsScript, () => encoded, { node }).catch(() => undefined)
    for (const [i, { resolve }] of looks.entries()) resolve(!(found instanceof Uint8Array && found[i] === NONE))
  }
}
