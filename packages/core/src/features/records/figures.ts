import { FIGURES, type FigureStep, type FiguresKeeper } from '../../store/figures.js'
import { clockOf, type Store } from '../../store/store.js'
import { type LiveFigures, liveIn } from './live.js'
import { processCounts } from './process-counts.js'
import { ProcessFigures } from './process-figures.js'
import { Reporter } from './reporter.js'

/** Live figures of a process, with its run. `figures` is undefined if they have the form of another version. */
export interface LiveProcess {
  readonly run: string
  readonly ageMs: number
  readonly figures: LiveFigures | undefined
}

/** The figures of a store: of all processes that report to it, or of this one. */
export interface Figures {
  readonly from: FiguresKeeper['from']
  now(): number
  /** @throws SluiceError `STORE_UNAVAILABLE` */
  live(): Promise<readonly LiveProcess[]>
  /** @throws SluiceError `STORE_UNAVAILABLE` */
  sums(step: FigureStep, first: number, last: number): ReturnType<FiguresKeeper['sums']>
  /** Why this process could not report lately. */
  readonly failure: Error | undefined
}

interface Reported {
  readonly keeper: FiguresKeeper
  reporter: Reporter | undefined
  users: number
}

const reported = new WeakMap<Store, Reported>()

/** The figures of a store, to read. */
export function figuresIn(store: Store): Figures {
  const all = reportedOf(store)
  const { keeper } = all
  return {
    from: keeper.from,
    now: () => keeper.now(),
    live: async () => (await keeper.live()).map(({ run, ageMs, text }) => ({ run, ageMs, figures: liveIn(text) })),
    sums: (step, first, last) => keeper.sums(step, first, last),
    get failure() {
      return all.reporter?.failure
    },
  }
}

/**
 * Has this process count, and report its counts each second: to the store, or, where others cannot read it, to itself. Reporting
 * ends with the store, or once all who started it have called the function that this returns.
 */
export function startReporting(store: Store): () => void {
  const all = reportedOf(store)
  if (all.users++ === 0) {
    const { source, run } = processCounts()
    const reporter = new Reporter(all.keeper, source, run)
    all.reporter = reporter
    all.keeper.beforeClose(() => reporter.stop())
  }
  let isOn = true
  return () => {
    if (!isOn) return
    isOn = false
    if (--all.users > 0) return
    void all.reporter?.stop()
    all.reporter = undefined
  }
}

function reportedOf(store: Store): Reported {
  let all = reported.get(store)
  if (!all) {
    all = { keeper: keeperOf(store), reporter: undefined, users: 0 }
    reported.set(store, all)
  }
  return all
}

/** Of stores that other processes cannot read, this process keeps the figures. */
function keeperOf(store: Store): FiguresKeeper {
  return store[FIGURES] ?? new ProcessFigures(clockOf(store) ?? Date.now)
}
