import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from '../../../support/built-core.js'

/** The state that an app reports. */
export interface State {
  readonly connections: number
  /** Free permits. */
  readonly permits: number
  /** Charged bytes. */
  readonly bytes: number
  /** Bytes of the longest body that a handler has read since the last report. */
  readonly mostRead: number
  readonly errors: readonly string[]
  /** Errors that would have ended the process, and warnings. */
  readonly faults: readonly string[]
}

/** To report the state of an app, and before that, to reset its limiter for a crowd of clients or for a single one. */
export interface Order {
  readonly app: number
  readonly expect?: 'crowd' | 'single' | undefined
}

/** A process with apps of one framework, one for each setup. */
export class FuzzedServer {
  readonly framework: string
  /** The ports, in the order of the setups. */
  readonly ports: readonly number[]
  readonly #child: ChildProcess
  readonly #ended = new AbortController()
  /** Orders are sent one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  private constructor(framework: string, ports: readonly number[], child: ChildProcess) {
    this.framework = framework
    this.ports = ports
    this.#child = child
    child.once('exit', () => this.#ended.abort(new Error(`${framework}: the process has ended`)))
  }

  static async start(framework: string): Promise<FuzzedServer> {
    ensureBuilt('core', 'express', 'koa', 'fastify')
    const child = fork(fileURLToPath(new URL('./server.js', import.meta.url)), [framework], {
      // Without the options of this process: servers run the built packages, not the source.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const [ports] = (await once(child, 'message')) as [number[]]
    return new FuzzedServer(framework, ports, child)
  }

  /** @throws Error if the process has ended */
  order(order: Order): Promise<State> {
    const state = this.#last.then(async () => {
      this.#ended.signal.throwIfAborted()
      this.#child.send(order)
      const [state] = (await once(this.#child, 'message', { signal: this.#ended.signal })) as [State]
      return state
    })
    this.#last = state.catch(() => {})
    return state
  }

  stop(): void {
    this.#child.kill()
  }
}
