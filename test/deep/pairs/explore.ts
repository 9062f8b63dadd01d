import type { Store } from '@sluice/core'
import type { Case } from './case.js'
import { caseOf } from './generator.js'
import { programOf } from './program.js'
import { Finding, Rejected, run } from './run.js'
import { shrink } from './shrink.js'

export interface Terms {
  readonly ways: readonly Case['way'][]
  readonly makeStore: (clock: () => number) => Store | Promise<Store>
  /** Of the first case; each next case has the next seed. */
  readonly seed: number
  readonly events: number
}

export interface Explored {
  readonly events: number
  readonly cases: readonly Case[]
  /** How often policies were rejected, by message. */
  readonly rejected: ReadonlyMap<string, number>
}

/** Plays random cases. Rejects with the smallest program in which product and model disagree. */
export async function explore({ ways, makeStore, seed, events }: Terms): Promise<Explored> {
  const rejected = new Map<string, number>()
  const cases: Case[] = []
  let played = 0
  for (let next = seed; played < events; next++) {
    const of = caseOf(next, ways)
    try {
      played += await run(of, makeStore)
      cases.push(of)
    } catch (error) {
      if (!(error instanceof Rejected)) throw await smallest(next, of, error as Error, makeStore)
      rejected.set(error.message, (rejected.get(error.message) ?? 0) + 1)
    }
  }
  return { events: played, cases, rejected }
}

async function smallest(seed: number, of: Case, first: Error, makeStore: Terms['makeStore']): Promise<Error> {
  let last = first
  const fails = async (candidate: Case) => {
    const error = await run(candidate, makeStore).then(
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
