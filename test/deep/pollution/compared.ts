import type { Store } from '@sluice/core'
import { polluted } from '../../support/polluted.js'

/** Limits, and what is asked of them. `make` and `use` run while prototypes may be polluted. */
export interface Scenario<Made = unknown> {
  readonly name: string
  make(store: Store): Made | Promise<Made>
  /** Notes decisions, each as one text, in their order. */
  use(made: Made, note: (decided: string) => void): Promise<void>
  /** The same without limits, where a framework or a client takes part: what differs there is not ours. */
  readonly without: Scenario | undefined
}

/** Whether `Object.prototype` is polluted before limiters are made, or after. */
export type When = 'before' | 'after'

/** A difference that a property of `Object.prototype` makes to decisions. */
export interface Difference {
  readonly name: string
  readonly scenario: string
  readonly text: string
}

/** The decisions of a scenario without any pollution. */
async function decisionsOf({ make, use }: Scenario, store: Store): Promise<readonly string[]> {
  const decisions: string[] = []
  await use(await make(store), (decided) => decisions.push(decided))
  return decisions
}

/** The number of names that are tried together. */
const GROUP = 32

/** The differences that names make, each alone, as a property of `Object.prototype`. */
export async function differencesOf(
  scenarios: readonly Scenario[],
  newStore: () => Store,
  names: readonly string[],
  value: unknown,
  when: When,
): Promise<readonly Difference[]> {
  const decisions = new Map<Scenario, readonly string[]>()
  for (const scenario of scenarios) decisions.set(scenario, await decisionsOf(scenario, newStore()))
  // Promises of the language ask each object for `then`: see the tests of verdicts.
  const tried = names.filter((name) => name !== 'then')
  const found: Difference[] = []
  for (let i = 0; i < tried.length; i += GROUP) {
    found.push(...(await differences(decisions, newStore, tried.slice(i, i + GROUP), value, when)))
  }
  return found
}

/**
 * The differences that each of these names makes, alone, as a property of `Object.prototype`. Names are tried together, and apart
 * where together they make a difference: a pollution costs V8 all that it knows of prototypes.
 */
async function differences(
  scenarios: ReadonlyMap<Scenario, readonly string[]>,
  newStore: () => Store,
  names: readonly string[],
  value: unknown,
  when: When,
): Promise<readonly Difference[]> {
  if (names.length === 0) return []
  const outcomes = await outcomesOf(scenarios, newStore, names, value, when)
  const changed = new Map([...scenarios].filter(([scenario]) => outcomes.get(scenario)?.kind !== 'same'))
  if (changed.size === 0) return []
  const found: Difference[] = []
  if (names.length > 1) {
    const middle = names.length >> 1
    const halves = [names.slice(0, middle), names.slice(middle)]
    for (const half of halves) found.push(...(await differences(changed, newStore, half, value, when)))
    return found
  }
  for (const scenario of changed.keys()) {
    const { kind, text } = outcomes.get(scenario) as Outcome
    if (kind === 'rejected' || (await isOfOthers(scenario, newStore, names, value, when))) continue
    found.push({ name: names[0] as string, scenario: scenario.name, text })
  }
  return found
}

interface Outcome {
  readonly kind: 'same' | 'rejected' | 'different'
  readonly text: string
}

async function outcomesOf(
  scenarios: ReadonlyMap<Scenario, readonly string[]>,
  newStore: () => Store,
  names: readonly string[],
  value: unknown,
  when: When,
): Promise<ReadonlyMap<Scenario, Outcome>> {
  const outcomes = new Map<Scenario, Outcome>()
  const made: unknown[] = []
  if (when === 'after') for (const { make } of scenarios.keys()) made.push(await make(newStore()))
  const clean = polluted(names, value)
  try {
    let i = 0
    for (const [scenario, expected] of scenarios) {
      outcomes.set(scenario, await outcomeOf(scenario, newStore, expected, made[i++]))
    }
  } finally {
    clean()
  }
  return outcomes
}

async function outcomeOf(
  { make, use }: Scenario,
  newStore: () => Store,
  expected: readonly string[],
  made: unknown,
): Promise<Outcome> {
  const decisions: string[] = []
  let text = ''
  try {
    await use(made ?? (await make(newStore())), (decided) => decisions.push(decided))
  } catch (thrown) {
    text = `${thrown}`
  }
  const i = expected.findIndex((decided, i) => decided !== decisions[i])
  if (i < 0 && text === '') return { kind: 'same', text }
  // Options are rejected while each object would have one.
  const isRejected = `${text} ${decisions[i]}`.includes('expected no property of this name on Object.prototype')
  if (isRejected) return { kind: 'rejected', text }
  return { kind: 'different', text: text || `decision ${i}: expected ${expected[i]}, got ${decisions[i]}` }
}

/** Whether the framework or the client alone differs by this name. */
async function isOfOthers(
  { without }: Scenario,
  newStore: () => Store,
  names: readonly string[],
  value: unknown,
  when: When,
): Promise<boolean> {
  if (!without) return false
  const expected = new Map([[without, await decisionsOf(without, newStore())]])
  const outcomes = await outcomesOf(expected, newStore, names, value, when)
  return outcomes.get(without)?.kind !== 'same'
}
