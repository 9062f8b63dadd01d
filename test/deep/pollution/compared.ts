import type { Store } from '@sluice/core'
import { Pollution } from '../../support/polluted.js'
import { OF_THE_LANGUAGE, ourReads } from './reads.js'

/** Limits, and what is asked of them. `make` and `use` run while `Object.prototype` may be polluted. */
export interface Scenario<Made = unknown> {
  readonly name: string
  make(store: Store): Made | Promise<Made>
  /** Notes decisions, each as one text, in their order. */
  use(made: Made, note: (decided: string) => void): Promise<void>
  /** The same without limits, where a framework or a client takes part: names that it reads are not ours. */
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

type Reads = ReadonlyMap<string, ReadonlySet<string>>

interface Outcome {
  readonly kind: 'same' | 'rejected' | 'different'
  readonly text: string
}

/**
 * What properties of `Object.prototype` change. All names are tried together, and apart only where together they make a difference.
 * Options whose names are rejected are left out one by one, and each scenario goes on without them.
 */
export class Sweep {
  readonly #newStore: () => Store
  readonly #names: readonly string[]
  /** By scenario: decisions on a clean prototype. */
  readonly #expected = new Map<string, readonly string[]>()
  /** By scenario and time: names of options. The value does not matter. */
  readonly #rejected = new Map<string, Set<string>>()
  /** The names of options that methods have rejected. */
  readonly #ofMethods = new Set<string>()
  /** By scenario and time: names that are read, and the places. */
  readonly #reads = new Map<string, Reads>()

  constructor(newStore: () => Store, names: readonly string[]) {
    this.#newStore = newStore
    this.#names = names.filter((name) => !OF_THE_LANGUAGE.includes(name))
  }

  /** The differences that names make by one value. */
  async differences(scenarios: readonly Scenario[], value: unknown, when: When): Promise<readonly Difference[]> {
    const alone = new Map(scenarios.flatMap(({ without }) => (without ? [[without.name, without]] : [])))
    await this.#readIn([...alone.values()], when)
    const namesOf = ({ without }: Scenario) => {
      const others = without && this.#reads.get(idOf(without, when))
      return others ? this.#names.filter((name) => !others.has(name)) : this.#names
    }
    const found: Difference[] = []
    await this.#inEach(scenarios, Pollution.by(value), when, async (runs) => {
      found.push(...(await this.#differencesIn(runs, namesOf(runs.scenario))))
    })
    return found
  }

  /** The names that our code reads through `Object.prototype`, whatever becomes of their values, each with the place. */
  async reads(scenarios: readonly Scenario[], when: When): Promise<readonly string[]> {
    await this.#readIn(scenarios, when)
    const found = new Set<string>()
    for (const scenario of scenarios) {
      for (const read of ourReads(this.#reads.get(idOf(scenario, when)) ?? new Map())) found.add(read)
    }
    return [...found].sort()
  }

  async #readIn(scenarios: readonly Scenario[], when: When): Promise<void> {
    const { pollution, reads } = Pollution.ofReads()
    const unknown = scenarios.filter((scenario) => !this.#reads.has(idOf(scenario, when)))
    await this.#inEach(unknown, pollution, when, async (runs) => {
      reads.clear()
      await this.#differencesIn(runs, this.#names, () => {
        // Constructors read options before they reject some.
        if (when === 'before') reads.clear()
      })
      this.#reads.set(idOf(runs.scenario, when), new Map(reads))
    })
  }

  /** The prototype stays polluted between scenarios: each change of it costs V8 what it knows of prototypes. */
  async #inEach(
    scenarios: readonly Scenario[],
    pollution: Pollution,
    when: When,
    take: (runs: Runs) => Promise<void>,
  ): Promise<void> {
    const all = scenarios.map((scenario) => new Runs(scenario, this.#newStore, pollution, when))
    try {
      for (const runs of all) {
        const { name } = runs.scenario
        if (!this.#expected.has(name)) this.#expected.set(name, await runs.decisions())
        await runs.prepare(SPARE)
      }
      for (const runs of all) await take(runs)
    } finally {
      pollution.become([])
      for (const runs of all) await runs.close()
    }
  }

  async #differencesIn(
    runs: Runs,
    names: readonly string[],
    noteRejected: () => void = () => {},
  ): Promise<readonly Difference[]> {
    const { scenario, when } = runs
    const expected = this.#expected.get(scenario.name) ?? []
    const rejected = this.#rejected.get(idOf(scenario, when)) ?? new Set()
    this.#rejected.set(idOf(scenario, when), rejected)
    const found: Difference[] = []
    let left = names.filter((name) => !rejected.has(name))
    for (;;) {
      const outcome = await runs.outcome(left, expected)
      if (outcome.kind === 'same') return found
      let name = outcome.text
      if (outcome.kind === 'rejected') {
        noteRejected()
        rejected.add(name)
        // Methods reject the same options in each scenario.
        if (when === 'after') for (const other of this.#ofMethods.add(name)) rejected.add(other)
      } else {
        const differs = async (names: readonly string[]) => (await runs.outcome(names, expected)).kind === 'different'
        name = await lastOfShortest(left, differs)
        found.push({ name, scenario: scenario.name, text: outcome.text })
      }
      left = left.filter((other) => other !== name && !rejected.has(other))
    }
  }
}

function idOf({ name }: Scenario, when: When): string {
  return `${name}, ${when}`
}

/** Runs of a scenario, each with limiters and a store of its own. */
class Runs {
  readonly scenario: Scenario
  readonly when: When
  readonly #newStore: () => Store
  readonly #pollution: Pollution
  readonly #stores: Store[] = []
  /** Made on a clean prototype, for further runs. */
  readonly #spare: unknown[] = []

  constructor(scenario: Scenario, newStore: () => Store, pollution: Pollution, when: When) {
    this.scenario = scenario
    this.when = when
    this.#newStore = newStore
    this.#pollution = pollution
  }

  /** Makes limiters for as many runs, on a clean prototype. */
  async prepare(runs: number): Promise<void> {
    while (this.when === 'after' && this.#spare.length < runs) this.#spare.push(await this.#make())
  }

  /** The decisions on a clean prototype. */
  async decisions(): Promise<readonly string[]> {
    const decisions: string[] = []
    await this.scenario.use(await this.#make(), (decided) => decisions.push(decided))
    return decisions
  }

  async outcome(polluted: readonly string[], expected: readonly string[]): Promise<Outcome> {
    if (this.when === 'after' && this.#spare.length === 0) {
      this.#pollution.become([])
      await this.prepare(MORE)
    }
    this.#pollution.become(polluted)
    const decisions: string[] = []
    let thrown = ''
    let timer: NodeJS.Timeout | undefined
    try {
      const made = this.when === 'after' ? this.#spare.pop() : await this.#make()
      const end = this.scenario.use(made, (decided) => decisions.push(decided))
      const late = new Promise((_, reject) => {
        timer = setTimeout(reject, LONGEST_MS, new Error('no end'))
      })
      await Promise.race([end, late])
    } catch (error) {
      thrown = `${error instanceof Error ? error.stack : error}`
    } finally {
      clearTimeout(timer)
    }
    const i = expected.findIndex((decided, i) => decided !== decisions[i])
    if (i < 0 && thrown === '') return { kind: 'same', text: '' }
    // Options are rejected while each object would have one.
    const [, name] = REJECTED.exec(`${thrown} ${decisions[i]}`) ?? []
    if (name !== undefined) return { kind: 'rejected', text: name }
    return { kind: 'different', text: thrown || `decision ${i}: expected ${expected[i]}, got ${decisions[i]}` }
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
  }

  #make(): unknown {
    const store = this.#newStore()
    this.#stores.push(store)
    return this.scenario.make(store)
  }
}

/** Limiters of a scenario that are made at first, and whenever these are used up. */
const SPARE = 3
const MORE = 16

/** A run that takes longer has lost its way. */
const LONGEST_MS = 20_000

const REJECTED = /([\w-]+): expected no property of this name on Object\.prototype/

/** The last name of the shortest beginning that makes a difference, as all of them do. */
async function lastOfShortest(
  names: readonly string[],
  differs: (names: readonly string[]) => Promise<boolean>,
): Promise<string> {
  let same = 0
  let different = names.length
  while (different - same > 1) {
    const middle = (same + different) >> 1
    if (await differs(names.slice(0, middle))) different = middle
    else same = middle
  }
  return names[different - 1] as string
}
