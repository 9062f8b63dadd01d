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
  settled?(): Promise<void>
  close?(): unknown
}

export interface Explored {
  /** Complete schedules, from the start to the end. */
  readonly schedules: number
  /** States told apart on the way: a state that is reached again is not gone on from again. */
  readonly states: number
}

export interface ExploreOptions {
  /** Only this schedule, as a failure names it. @default the environment's SLUICE_SCHEDULE, else all */
  readonly schedule?: string | undefined
}

/** A choice that was made, and what came of it. */
interface Branch {
  readonly state: string
  readonly choices: number
  choice: number
  /** Complete schedules from here. */
  schedules: number
}

/**
 * Runs a world through every order in which its steps can be taken, depth first, each time from the start. The
 * first order that breaks something is thrown with its steps and with the numbers that repeat it:
 * `SLUICE_SCHEDULE=0.2.1 npx vitest run --root test interleavings -t 'name of the test'`.
 */
export async function explore(
  make: () => World | Promise<World>,
  { schedule = process.env.SLUICE_SCHEDULE }: ExploreOptions = {},
): Promise<Explored> {
  if (schedule !== undefined) {
    const branches = schedule
      .split('.')
      .map((choice) => ({ state: '', choices: 0, choice: Number(choice), schedules: 0 }))
    await run(make, branches)
    return { schedules: 1, states: 0 }
  }
  /** How many complete schedules there are from each state that is done with. */
  const done = new Map<string, number>()
  const branches: Branch[] = []
  for (;;) {
    let schedules = await run(make, branches, (state) => done.get(state))
    for (;;) {
      const last = branches.at(-1)
      if (!last) return { schedules, states: done.size }
      last.schedules += schedules
      if (++last.choice < last.choices) break
      done.set(last.state, last.schedules)
      schedules = last.schedules
      branches.pop()
    }
  }
}

/** One run: along `branches`, and on by first choices, which are added. Returns how many schedules its last state stands for. */
async function run(
  make: () => World | Promise<World>,
  branches: Branch[],
  known?: (state: string) => number | undefined,
): Promise<number> {
  const world = await make()
  const taken: string[] = []
  const choices: number[] = []
  try {
    for (let depth = 0; ; depth++) {
      await (world.settled?.() ?? settled())
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
        branches.push({ state, choices: steps.length, choice: 0, schedules: 0 })
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
export async function settled(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
