import type { Case } from './case.js'
import { FEATURES, type Feature, HAS, rejectionsOf } from './features.js'
import { caseOf } from './generator.js'
import { programOf } from './program.js'
import { Finding, type MakeStore, Rejected, run } from './run.js'
import { shrink } from './shrink.js'

export interface Terms {
  readonly ways: readonly Case['way'][]
  /** The framework whose server they are in front of. @default none */
  readonly server?: string
  /** How many processes. @default 1 */
  readonly processes?: number
  readonly makeStore: MakeStore
  /** Of the first case; each next case has the next seed. */
  readonly seed: number
  readonly events: number
  /** Features that no case has together. */
  readonly without?: readonly Feature[] | undefined
  /** Makes timers due that exchange relaxed counts. */
  readonly passTime?: (() => void) | undefined
}

export interface Explored {
  readonly events: number
  /** The events of all cases that had both features, by their names. */
  readonly met: ReadonlyMap<string, number>
}

/** Plays random cases. Rejects with the smallest program in which product and model disagree. */
export async function explore(terms: Terms): Promise<Explored> {
  const { ways, server, processes, makeStore, seed, events, without, passTime } = terms
  const met = new Map<string, number>()
  let played = 0
  for (let next = seed; played < events; next++) {
    const of = caseOf(next, ways, { ...(server && { server }), ...(processes && { processes }) })
    if (without?.every((feature) => HAS[feature](of))) continue
    const reasons = rejectionsOf(of)
    try {
      const steps = await run(of, makeStore, passTime)
      played += steps
      // Rejections of methods come with their calls, if there are any that do something.
      if (reasons.length > 0) continue
      note(of, steps, met)
    } catch (error) {
      const isExpected = error instanceof Rejected && reasons.some((reason) => error.message.includes(reason))
      if (!isExpected) throw await smallest(next, of, error as Error, terms)
    }
  }
  return { events: played, met }
}

function note(of: Case, events: number, met: Map<string, number>): void {
  const present = FEATURES.filter((feature) => HAS[feature](of))
  for (const [i, one] of present.entries()) {
    for (const other of present.slice(i + 1)) {
      const pair = `${one}, ${other}`
      met.set(pair, (met.get(pair) ?? 0) + events)
    }
  }
}

async function smallest(seed: number, of: Case, first: Error, { makeStore, passTime }: Terms): Promise<Error> {
  let last = first
  const fails = async (candidate: Case) => {
    const error = await run(candidate, makeStore, passTime).then(
      () => undefined,
      (error: Error) => error,
    )
    const isSame = error !== undefined && kindOf(error) === kindOf(first)
    if (isSame) last = error
    return isSame
  }
  const small = await shrink(of, fails)
  return new Error(`seed ${seed}: ${last.message}\n\n${programOf(small)}`, { cause: last })
}

/** A shrunk case must fail in the same way: one that is nonsense fails in another. */
function kindOf(error: Error): string {
  return error instanceof Finding ? error.what.replace(/\d/, '') : error.message.slice(0, 40)
}
