import { randomFrom } from '../../../contract/policies.js'
import { byEffort } from '../../../support/effort.js'

/** One possible next event. */
export interface Step {
  readonly name: string
  take(): unknown
}

/** A small system without events of its own: its explorer decides which step comes next. */
export interface World {
  /** The possible next steps, in an order that is the same in every run; none at the end. */
  steps(): Step[]
  /** Everything that the future depends on, as text: the steps after equal texts are explored once. */
  state(): string
  /** Throws when this state breaks an invariant. Not called for the states of a path that was explored before. */
  check(): unknown
  /** Throws when the final state breaks an invariant. */
  end(): unknown
  /** Resolves when all consequences of a step are complete. @default the end of this turn of the event loop */
  quiet?(): Promise<void>
  close?(): unknown
}

export interface ExploreOptions {
  /** Only this schedule, as a failure names it. @default SLUICE_SCHEDULE of the environment, otherwise all or a sample */
  readonly schedule?: string | undefined
  /**
   * The number of random schedules, the same in every run. @default all schedules in `npm run deep`, otherwise as many as
   * a test before a merge has time for
   */
  readonly sample?: number
}

/** Every schedule, for tests of mistakes that the explorer must find. */
export const ALL: ExploreOptions = { sample: Number.POSITIVE_INFINITY }

const SAMPLE = byEffort({ usual: 25, full: Number.POSITIVE_INFINITY })

/** A choice of a step, and the state before it. */
interface Branch {
  readonly state: string
  readonly choices: number
  choice: number
  /** The number of complete schedules from here. */
  schedules: number
}

/**
 * Runs a world through the orders of its steps, each time from the start: all of them, depth first, or a sample. The first
 * order that breaks an invariant is thrown with its steps and with the numbers that repeat it:
 * `SLUICE_SCHEDULE=0.2.1 npx vitest run --root test interleavings -t 'name of the test'`.
 *
 * @param moreThan a number that the complete schedules exceed when the world branches as its test intends
 */
export async function explore(
  make: () => World | Promise<World>,
  moreThan: number,
  { schedule = process.env.SLUICE_SCHEDULE, sample = SAMPLE }: ExploreOptions = {},
): Promise<void> {
  if (schedule !== undefined) {
    const branches = schedule
      .split('.')
      .map((choice) => ({ state: '', choices: 0, choice: Number(choice), schedules: 0 }))
    await run(make, branches)
  } else if (Number.isFinite(sample)) await exploreSome(make, sample)
  else {
    const schedules = await exploreAll(make)
    if (schedules <= moreThan) throw new Error(`expected more than ${moreThan} schedules; there are ${schedules}`)
  }
}

/** Returns the number of complete schedules. A state that is reached again is not explored again. */
async function exploreAll(make: () => World | Promise<World>): Promise<number> {
  /** The number of complete schedules from each explored state. */
  const done = new Map<string, number>()
  const branches: Branch[] = []
  for (;;) {
    let schedules = await run(make, branches, { known: (state) => done.get(state) })
    for (;;) {
      const last = branches.at(-1)
      if (!last) return schedules
      last.schedules += schedules
      if (++last.choice < last.choices) break
      done.set(last.state, last.schedules)
      schedules = last.schedules
      branches.pop()
    }
  }
}

async function exploreSome(make: () => World | Promise<World>, count: number): Promise<void> {
  const pick = randomFrom(1)
  for (let i = 0; i < count; i++) await run(make, [], { pick })
}

interface RunOptions {
  /** The number of schedules from an explored state. @default no state is explored */
  readonly known?: (state: string) => number | undefined
  /** The step to take beyond the given branches. @default the first */
  readonly pick?: (choices: number) => number
}

/** One run: along `branches`, and then by new choices, which it adds. Returns the number of schedules from its last state. */
async function run(
  make: () => World | Promise<World>,
  branches: Branch[],
  { known, pick = () => 0 }: RunOptions = {},
): Promise<number> {
  const world = await make()
  const taken: string[] = []
  const choices: number[] = []
  try {
    for (let depth = 0; ; depth++) {
      await (world.quiet?.() ?? quiet())
      // The path to the last choice was checked before.
      if (depth >= branches.length || !known) await world.check()
      const steps = world.steps()
      if (steps.length === 0) {
        await world.end()
        return 1
      }
      if (depth === branches.length) {
        const state = world.state()
        const schedules = known?.(state)
        if (schedules !== undefined) return schedules
        branches.push({ state, choices: steps.length, choice: pick(steps.length), schedules: 0 })
      }
      const { choice } = branches[depth] as Branch
      const step = steps[choice]
      if (!step) throw new Error('the same steps led to another state: the world is not deterministic')
      taken.push(step.name)
      choices.push(choice)
      await step.take()
    }
  } catch (error) {
    const steps = taken.map((name, i) => `  ${i + 1}. ${name}`).join('\n')
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`${why}\nafter\n${steps}\nSLUICE_SCHEDULE=${choices.join('.')}`, { cause: error })
  } finally {
    await world.close?.()
  }
}

/** Lets pending promises run, and the callbacks that they defer to the end of a turn. */
export async function quiet(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
