import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Setup } from './app.js'

/** The counts of one key in the store. */
export interface Count {
  readonly kind: string
  readonly ledger: number
  readonly freePermits: number
}

export interface Rest {
  readonly asked: number
  readonly unanswered: number
  readonly faults: readonly string[]
}

interface Probe {
  readonly kind: string
  readonly to: number
}

/** A process of a service under load. */
export class App {
  readonly file: string
  /** The instant at which the test killed it, by the common clock. */
  killedAt: number | undefined
  /** The reason for an end that the scenario did not cause. */
  exit: string | undefined
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(answer: never): void; reject(error: Error): void }>()
  #orders = 0
  #isEnding = false

  private constructor(child: ChildProcess, file: string) {
    this.#child = child
    this.file = file
    child.on('message', ({ id, answer }: { id: number; answer: never }) => {
      this.#waiting.get(id)?.resolve(answer)
      this.#waiting.delete(id)
    })
    child.on('exit', (code, signal) => {
      if (!this.#isEnding || code !== 0) this.exit ??= `ended with ${signal ?? code}`
      for (const { reject } of this.#waiting.values()) reject(new Error('an app has ended before it replied'))
    })
  }

  static async start(setup: Setup): Promise<App> {
    const child = fork(fileURLToPath(new URL('./app.js', import.meta.url)), [JSON.stringify(setup)], {
      // Without the options of this process: apps run the built package, not the source.
      execArgv: ['--expose-gc'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const app = new App(child, setup.file)
    await once(child, 'message')
    return app
  }

  /** For each key, whether the store decides, and the latest instant at which that was known. */
  probe(): Promise<readonly Probe[]> {
    return this.#order('probe')
  }

  /** Heap and buffers in bytes, after a collection. */
  memory(): Promise<number> {
    return this.#order('memory')
  }

  async kill(): Promise<void> {
    const exit = once(this.#child, 'exit')
    this.killedAt = commonNow()
    this.#child.kill('SIGKILL')
    await exit
    this.exit = undefined
  }

  /** Stops its load, and waits for pending requests. */
  rest(): Promise<Rest> {
    return this.#order('rest')
  }

  /** Resumes its load. */
  goOn(): Promise<void> {
    return this.#order('goOn')
  }

  /** The counts of each key. */
  counts(): Promise<readonly Count[]> {
    return this.#order('counts')
  }

  /** Makes it close its store and client, and waits until it exits. */
  async stop(): Promise<void> {
    const exit = once(this.#child, 'exit')
    this.#isEnding = true
    await this.#order('stop')
    const tooLong = setTimeout(() => {
      this.exit = 'did not end by itself'
      this.#child.kill('SIGKILL')
    }, 5000)
    await exit
    clearTimeout(tooLong)
  }

  /** Kills it in any state. */
  destroy(): void {
    this.#child.kill('SIGKILL')
  }

  #order<Answer>(order: string): Promise<Answer> {
    const id = this.#orders++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ order, id })
    })
  }
}

/** Milliseconds by the one clock of all processes of this machine. */
export function commonNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
