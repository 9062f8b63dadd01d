import { randomFrom } from '../../../contract/policies.js'
import { byEffort } from '../../../support/effort.js'

/** One thing that may happen next. */
export interface Step {
  readonly name: string
  take(): unknown
}

/** A small system in which nothing happens by itself: its explorer decides what happens next. */
export interface World {
  /** What may happen next, in an order that is the same in every run; nothing at the end. */
  steps(): Step[]
  /** All that the future depends on, as text: what follows equal texts is explored once. */
  state(): string
  /** Throws unless all is well in this state. Not called on the way to a state that has been gone before. */
  check(): unknown
  /** Throws unless all is well at the end. */
  end(): unknown
  /** Resolves when nothing more happens by itself. @default the end of this turn of the event loop */
  quiet?(): Promise<void>
  close?(): unknown
}

export interface ExploreOptions {
  /** Only this schedule, as a failure names it. @default the environment's SLUICE_SCHEDULE, else all or a sample */
  readonly schedule?: string | undefined
  /**
   * How many schedules are tried, each by chance, the same in every run. @default all of them in `npm run deep`, and
   * as many as a merge has time for otherwise
   */
  readonly sample?: number
}

/** For what must be found: every schedule, however much is tried elsewhere. */
export const ALL: ExploreOptions = { sample: Number.POSITIVE_INFINITY }

const SAMPLE = byEffort({ usual: 50, full: Number.POSITIVE_INFINITY })

/** A choice that was made, and what came of it. */
interface Branch {
  readonly state: string
  readonly choices: number
  choice: number
  /** Complete schedules from here. */
  schedules: number
}

/**
 * Runs a world through the orders in which its steps can be taken, each time from the start: all of them, depth first,
 * or a sample. The first order that breaks something is thrown with its steps and with the numbers that repeat it:
 * `SLUICE_SCHEDULE=0.2.1 npx vitest run --root test interleavings -t 'name of the test'`.
 *
 * @param moreThan how many complete schedules a world has at least that branches as its test means
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

/** Returns how many complete schedules there are. A state that is reached again is not gone on from again. */
async function exploreAll(make: () => World | Promise<World>): Promise<number> {
  /** How many complete schedules there are from each state that is done with. */
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
  /** How many schedules a state stands for that is done with. @default none is */
  readonly known?: (state: string) => number | undefined
  /** Which of so many steps is taken where nothing is said. @default the first */
  readonly pick?: (choices: number) => number
}

/** One run: along `branches`, and on by choices that are added. Returns how many schedules its last state stands for. */
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
      // The way to the last choice has been gone before.
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
      if (!step) throw new Error('the same steps led elsewhere this time: something here is left to chance')
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

/** Lets everything run that waits for nothing but its turn: promises, and what they put off to the end of a turn. */
export async function quiet(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
