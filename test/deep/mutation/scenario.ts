import { type Limiter, type LimiterOptions, memoryStore, type Store, type Verdict } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import { Clock } from '../../contract/store-under-test.js'

export type Policy = Omit<LimiterOptions<string>, 'store'>

/** A call of one of the limiters, or of one of another process, perhaps about an earlier verdict. */
export type Call = (
  limiters: readonly Limiter[],
  verdict: Verdict | undefined,
  elsewhere: readonly Limiter[],
) => Promise<unknown>

export interface RecordedCall {
  readonly ask: Call
  /** The number of the result with the verdict that the call is about. */
  readonly of: number | undefined
}

/** The calls at one instant, in one batch. */
export interface Step {
  readonly at: number
  readonly calls: readonly RecordedCall[]
}

/** Calls, and their results in memory, which Redis must repeat. */
export interface Scenario {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly steps: readonly Step[]
  readonly results: readonly string[]
  /** Whether keys are deleted when their life ends by the clock of the steps, which must not step back. */
  readonly forgets: boolean
  /** Whether settlements exceed what was charged, so that states may live longer. */
  readonly owes: boolean
}

export function limitersOn(store: Store, policies: readonly Policy[]): Limiter[] {
  return policies.map((policy) => createLimiter({ ...policy, store } as never))
}

/** Makes calls on the memory store, and records them with their instants and results. */
export class Recorder {
  readonly clock = new Clock()
  readonly #policies: readonly Policy[]
  readonly #limiters: readonly Limiter[]
  readonly #steps: { at: number; calls: RecordedCall[] }[] = []
  readonly #results: unknown[] = []
  readonly #texts: string[] = []

  constructor(policies: readonly Policy[]) {
    this.#policies = policies
    this.#limiters = limitersOn(memoryStore({ clock: this.clock.read }), policies)
  }

  /** The results so far. */
  get results(): readonly unknown[] {
    return this.#results
  }

  /** Opens a batch at the instant of the clock, which takes all later calls. */
  step(): void {
    this.#steps.push({ at: this.clock.now, calls: [] })
  }

  async ask(ask: Call, of?: number): Promise<unknown> {
    this.#steps.at(-1)?.calls.push({ ask, of })
    const verdict = of === undefined ? undefined : (this.#results[of] as Verdict)
    const result = await ask(this.#limiters, verdict, this.#limiters)
    this.#results.push(result)
    this.#texts.push(textOf(result))
    return result
  }

  scenario(name: string, { forgets = false, owes = false }: { forgets?: boolean; owes?: boolean } = {}): Scenario {
    return { name, policies: this.#policies, steps: this.#steps, results: this.#texts, forgets, owes }
  }
}

/** The whole result as text. */
export function textOf(result: unknown): string {
  return JSON.stringify(result) ?? 'nothing'
}
