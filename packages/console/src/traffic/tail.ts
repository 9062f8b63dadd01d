import type { SharedNotes } from '@sluice/core/internal'
import type { TailAnswer, TailBody, TrafficFilter } from './answers.js'
import { Paths } from './decisions.js'
import { fits, type KnownFilter, MAX_FILTERS, OPEN_MS, tailIn, tailName, WATCHED, watchedIn } from './tail-text.js'

/** Processes write a second once it is over, at the latest after as long, in s. */
const LATE_S = 3
/** Rows of an answer: the newest. */
const MAX_ROWS = 1000
/** Processes that have written within as long are read, in ms. */
const ALIVE_MS = 60_000

/** A sample of the decisions of all processes, of the last seconds. */
export class Tail {
  readonly #notes: SharedNotes
  readonly #paths = new Paths()

  constructor(notes: SharedNotes) {
    this.#notes = notes
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  async read({ after = 0, ...filter }: TailBody): Promise<TailAnswer> {
    const now = this.#notes.now()
    await this.#watch(filter, now)
    const known = await this.#known(filter)
    const members = await this.#notes.members(Date.now() - ALIVE_MS)
    const texts = await this.#notes.get(members.map(tailName))
    const last = Math.floor(now / 1000) - LATE_S
    const seconds = texts
      .flatMap(tailIn)
      .filter(({ second, decisions }) => second > after && second <= last && decisions > 0)
    const sum = (of: 'decisions' | 'fitting') => seconds.reduce((all, each) => all + each[of], 0)
    const sampled = seconds.flatMap(({ rows }) => rows)
    const rows = sampled.filter((row) => fits(row, known, this.#paths)).sort((one, other) => other.at - one.at)
    return {
      after: last,
      decisions: sum('decisions'),
      // Of the decisions that any open filter shows, as many are in the sample.
      share: sum('fitting') === 0 ? 1 : sampled.length / sum('fitting'),
      processes: texts.filter((text) => text !== undefined).length,
      rows: rows.slice(0, MAX_ROWS),
    }
  }

  /** Has processes show decisions that fit a filter, for the next seconds. */
  async #watch(filter: TrafficFilter, now: number): Promise<void> {
    const [text] = await this.#notes.get([WATCHED])
    const watched = watchedIn(text, now)
    const key = keyOf(filter)
    const own = watched.find(([, each]) => keyOf(each) === key)
    if (own && own[0] > now + OPEN_MS / 2) return
    const others = watched.filter((each) => each !== own).slice(-(MAX_FILTERS - 1))
    // Two consoles at the same time: the one that was lost is there again a second later.
    await this.#notes.set(WATCHED, JSON.stringify([...others, [now + OPEN_MS, filter]]), OPEN_MS)
  }

  async #known({ client, ...filter }: TrafficFilter): Promise<KnownFilter> {
    if (client === undefined) return filter
    const [identity = ''] = await this.#notes.identitiesOf([client])
    return { ...filter, identity }
  }
}

const keyOf = (filter: TrafficFilter): string => JSON.stringify(Object.entries(filter).sort())
