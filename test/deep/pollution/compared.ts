import type { Limiter, Store } from '@sluice/core'
import { polluted } from '../../support/polluted.js'
import type { Scenario } from './scenarios.js'

/** Whether `Object.prototype` is polluted before limiters are made, or after. */
export type When = 'before' | 'after'

/** A difference that a property of `Object.prototype` makes to decisions. */
export interface Difference {
  readonly name: string
  readonly scenario: string
  readonly text: string
}

/** The decisions of a scenario without any pollution. */
export async function decisionsOf({ make, use }: Scenario, store: Store): Promise<readonly string[]> {
  const decisions: string[] = []
  await use(make(store), (decided) => decisions.push(decided))
  return decisions
}

/**
 * The differences that each of these names makes, alone, as a property of `Object.prototype`. Names are tried together, and apart
 * where together they make a difference: a pollution costs V8 all that it knows of prototypes.
 */
export async function differences(
  scenarios: ReadonlyMap<Scenario, readonly string[]>,
  newStore: () => Store,
  names: readonly string[],
  value: unknown,
  when: When,
): Promise<readonly Difference[]> {
  if (names.length === 0) return []
  const outcomes: Outcome[] = []
  const made = when === 'after' ? [...scenarios.keys()].map(({ make }) => make(newStore())) : undefined
  const clean = polluted(names, value)
  try {
    let i = 0
    for (const [scenario, expected] of scenarios)
      outcomes.push(await outcomeOf(scenario, newStore, expected, made?.[i++]))
  } finally {
    clean()
  }
  if (outcomes.every(({ kind }) => kind === 'same')) return []
  if (names.length > 1) {
    const middle = names.length >> 1
    const halves = [names.slice(0, middle), names.slice(middle)]
    const found = []
    for (const half of halves) found.push(...(await differences(scenarios, newStore, half, value, when)))
    return found
  }
  return outcomes.flatMap(({ kind, scenario, text }) =>
    kind === 'different' ? [{ name: names[0] as string, scenario, text }] : [],
  )
}

interface Outcome {
  readonly scenario: string
  readonly kind: 'same' | 'rejected' | 'different'
  readonly text: string
}

async function outcomeOf(
  { name: scenario, make, use }: Scenario,
  newStore: () => Store,
  expected: readonly string[],
  made: Limiter<string> | undefined,
): Promise<Outcome> {
  const decisions: string[] = []
  let text = ''
  try {
    await use(made ?? make(newStore()), (decided) => decisions.push(decided))
  } catch (thrown) {
    text = `${thrown}`
  }
  // Options are rejected while each object would have one.
  const isRejected = text.includes('expected no property of this name on Object.prototype')
  const i = expected.findIndex((decided, i) => decided !== decisions[i])
  if (isRejected && (i < 0 || i >= decisions.length)) return { scenario, kind: 'rejected', text }
  if (i < 0 && text === '') return { scenario, kind: 'same', text }
  return { scenario, kind: 'different', text: text || `decision ${i}: expected ${expected[i]}, got ${decisions[i]}` }
}
