import type { DecisionEvent } from '@sluice/core'
import type { SharedNotes } from '@sluice/core/internal'
import { clientsOf, Paths, policiesOf, reasonOf, type Sink } from './decisions.js'
import {
  fits,
  type KnownFilter,
  OPEN_MS,
  SECONDS,
  SHOWN,
  type TailRow,
  type TailSecond,
  tailName,
  tailText,
  WATCHED,
  watchedIn,
} from './tail-text.js'

const SECOND_MS = 1000
const LONGEST_PATH = 256
/** Texts between two notes that this process writes. */
const JOIN_EVERY = 10

/** A sample of the decisions of each second, only while a console shows them. */
export class TailSink implements Sink {
  readonly #notes: SharedNotes
  readonly #member: string
  readonly #paths = new Paths()
  /** Undefined while no console shows decisions. */
  #filters: readonly KnownFilter[] | undefined
  #known = ''
  #present: { second: number; decisions: number; fitting: number; rows: TailRow[] } | undefined
  #past: readonly TailSecond[] = []
  #joins = 0

  constructor(notes: SharedNotes, member: string) {
    this.#notes = notes
    this.#member = member
  }

  note(event: DecisionEvent): void {
    if (!this.#filters) return
    const at = this.#notes.now()
    const present = this.#at(Math.floor(at / SECOND_MS))
    present.decisions++
    const { limit, path } = event
    const row: TailRow = {
      at,
      policies: policiesOf(event),
      reason: reasonOf(event),
      ...(limit !== undefined && { limit }),
      ...(path !== undefined && { path: path.slice(0, LONGEST_PATH) }),
      clients: clientsOf(event),
    }
    if (!this.#filters.some((filter) => fits(row, filter, this.#paths))) return
    present.fitting++
    if (present.rows.length < SHOWN) present.rows.push(row)
    else {
      // Each has the same chance: Vitter, "Random sampling with a reservoir" (1985), algorithm R.
      const place = Math.floor(Math.random() * present.fitting)
      if (place < SHOWN) present.rows[place] = row
    }
  }

  async tick(): Promise<void> {
    const now = this.#notes.now()
    const [text] = await this.#notes.get([WATCHED])
    const watched = watchedIn(text, now)
    if (watched.length === 0) {
      this.#filters = undefined
      this.#present = undefined
      this.#past = []
      this.#known = ''
      return
    }
    await this.#watch(watched.map(([, filter]) => filter))
    this.#at(Math.floor(now / SECOND_MS))
    if (this.#joins++ % JOIN_EVERY === 0) await this.#notes.join(this.#member)
    await this.#notes.set(tailName(this.#member), tailText(this.#past), OPEN_MS)
  }

  /** Looks up the clients of filters that are new. */
  async #watch(filters: readonly { readonly client?: string }[]): Promise<void> {
    const known = JSON.stringify(filters)
    if (known === this.#known) return
    const ids = filters.map(({ client = '' }) => client)
    const identities = await this.#notes.identitiesOf(ids)
    this.#filters = filters.map(({ client, ...filter }, i) => ({
      ...filter,
      // A client that is not known is in no request.
      ...(client !== undefined && { identity: identities[i] ?? '' }),
    }))
    this.#known = known
  }

  /** The present second; those before it are over. */
  #at(second: number) {
    const present = this.#present
    if (present && present.second >= second) return present
    if (present) this.#past = [...this.#past, present].slice(-SECONDS)
    this.#present = { second, decisions: 0, fitting: 0, rows: [] }
    return this.#present
  }
}
