import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from '../../../support/built-core.js'

/** What an app tells of itself. */
export interface State {
  readonly connections: number
  /** That are free. */
  readonly permits: number
  /** That are charged. */
  readonly bytes: number
  /** Bytes of the longest body that a handler has read since it was last asked. */
  readonly mostRead: number
  readonly errors: readonly string[]
  /** Of the whole process: what would have ended it, and warnings. */
  readonly faults: readonly string[]
}

/** A process with apps of one framework, one for each setup. */
export class FuzzedServer {
  readonly framework: string
  /** In the order of the setups. */
  readonly ports: readonly number[]
  readonly #child: ChildProcess
  readonly #ended = new AbortController()
  /** Orders are given one after the other. */
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
      // Not this process's own options: servers run what users install, not the source.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const [ports] = (await once(child, 'message')) as [number[]]
    return new FuzzedServer(framework, ports, child)
  }

  /** @throws Error if the process is gone */
  order(order: 'look' | 'reset', app: number): Promise<State> {
    const state = this.#last.then(async () => {
      this.#ended.signal.throwIfAborted()
      this.#child.send({ order, app })
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
