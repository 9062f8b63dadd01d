import { createLimiter, type Limiter, type LimiterOptions, memoryStore, type Store, type Verdict } from '@sluice/core'
import { Clock } from '../../contract/store-under-test.js'

export type Policy = Omit<LimiterOptions<string>, 'store'>

/** Something asked of one of the limiters, or of one of another process; `of`, a verdict it is about. */
export type Call = (
  limiters: readonly Limiter[],
  verdict: Verdict | undefined,
  elsewhere: readonly Limiter[],
) => Promise<unknown>

export interface Asked {
  readonly ask: Call
  /** The number of the answer that holds the verdict it is about. */
  readonly of: number | undefined
}

/** What is asked at one instant, in one batch. */
export interface Step {
  readonly at: number
  readonly asks: readonly Asked[]
}

/** Things asked, and what memory answered: Redis must say the same. */
export interface Scenario {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly steps: readonly Step[]
  readonly answers: readonly string[]
  /** Keys are forgotten when their life is over by the clock of the steps, which must not step back. */
  readonly forgets: boolean
}

export function limitersOn(store: Store, policies: readonly Policy[]): Limiter[] {
  return policies.map((policy) => createLimiter({ ...policy, store } as never))
}

/** Asks memory, and writes down what was asked when, and what it said. */
export class Recorder {
  readonly clock = new Clock()
  readonly #policies: readonly Policy[]
  readonly #limiters: readonly Limiter[]
  readonly #steps: { at: number; asks: Asked[] }[] = []
  readonly #answers: unknown[] = []
  readonly #texts: string[] = []

  constructor(policies: readonly Policy[]) {
    this.#policies = policies
    this.#limiters = limitersOn(memoryStore({ clock: this.clock.read }), policies)
  }

  /** What was answered so far. */
  get answers(): readonly unknown[] {
    return this.#answers
  }

  /** Opens a batch at the clock's instant: what is asked from here on goes together. */
  step(): void {
    this.#steps.push({ at: this.clock.now, asks: [] })
  }

  async ask(ask: Call, of?: number): Promise<unknown> {
    this.#steps.at(-1)?.asks.push({ ask, of })
    const verdict = of === undefined ? undefined : (this.#answers[of] as Verdict)
    const answer = await ask(this.#limiters, verdict, this.#limiters)
    this.#answers.push(answer)
    this.#texts.push(said(answer))
    return answer
  }

  scenario(name: string, { forgets = false }: { forgets?: boolean } = {}): Scenario {
    return { name, policies: this.#policies, steps: this.#steps, answers: this.#texts, forgets }
  }
}

/** All that an answer says. */
export function said(answer: unknown): string {
  return JSON.stringify(answer) ?? 'nothing'
}
