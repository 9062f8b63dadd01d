import type { Store } from '@sluice/core'
import { type SharedNotes, sharedNotesOf, textValue } from '@sluice/core/internal'
import { OneAtATime } from '../one-at-a-time.js'
import { Problem } from '../problem.js'
import type { NearAnswer, TailAnswer, TailBody, TrafficAnswer, TrafficBody, TrafficEntry } from './answers.js'
import { type ClientIds, notesIn } from './client-ids.js'
import { clientsNear } from './near.js'
import { writeTraffic } from './record-traffic.js'
import { Tail } from './tail.js'
import { HOUR_MS, MINUTE_MS, topName } from './top-sink.js'
import { topOf } from './tops.js'
import { TrafficCounts } from './traffic-counts.js'
import { countsIn } from './traffic-text.js'

const DAY_MS = 24 * HOUR_MS
/** Longer spans are read by hours. */
const BY_MINUTES_MS = 2 * HOUR_MS
/** Texts of one answer, of up to 16 kB each. */
const MAX_TEXTS = 6000
/** Names of a step that are read at a time: their texts take a few ms to read. */
const AT_A_TIME = 50
/** Entries of the sums of an answer, at times twice as many. */
const MERGED = 4096

/** The traffic of all processes in a span of time. */
interface Summed {
  readonly counts: TrafficCounts
  readonly processes: number
  /** Texts that are not of this version. */
  readonly unreadable: number
  /** Processes beyond those that are read. */
  readonly left: number
}

/** Where requests come from: reads what processes have recorded. */
export class Traffic {
  readonly #store: Store
  readonly #notes: SharedNotes | undefined
  readonly #ids: ClientIds
  readonly #sums = new OneAtATime<Summed>()
  readonly #near = new OneAtATime<NearAnswer>()
  #tail: Tail | undefined

  constructor(store: Store, ids: ClientIds) {
    this.#store = store
    this.#ids = ids
    this.#notes = sharedNotesOf(store)
  }

  /** @throws Problem; SluiceError `STORE_UNAVAILABLE` */
  async read({ from, to, by = 'decisions', top = 10, ...filter }: TrafficBody): Promise<TrafficAnswer> {
    const notes = notesIn(this.#notes, 'traffic')
    if (to < from) throw new Problem(400, 'to: expected a time after from')
    if (to - from > DAY_MS) throw new Problem(400, 'from: expected at most 24 hours before to')
    const step = to - from > BY_MINUTES_MS ? 'hour' : 'minute'
    const stepMs = step === 'hour' ? HOUR_MS : MINUTE_MS
    const [first, last] = [Math.floor(from / stepMs), Math.floor(to / stepMs)]
    const question = `${step} ${first} ${last}`
    const { counts, processes, unreadable, left } = await this.#sums.answer(question, () =>
      this.#sum(notes, step, first, last),
    )
    const tops = { by, top, filter }
    const clients = topOf(counts, 'client', tops)
    const named = await notes.identitiesOf(clients.entries.map(({ value }) => value))
    return {
      from: first * stepMs,
      now: Math.floor(notes.now()),
      step,
      processes,
      decisions: counts.decisions,
      refused: counts.refused,
      policies: topOf(counts, 'policy', tops),
      reasons: topOf(counts, 'reason', tops),
      paths: topOf(counts, 'path', tops),
      networks: topOf(counts, 'network', tops),
      clients: { ...clients, entries: clients.entries.map((entry, i) => withClient(entry, named[i])) },
      ...(filter.client !== undefined && { client: await this.#ids.clientOf(filter.client) }),
      notes: [
        ...(unreadable > 0 ? [`Records of another version are left out: ${unreadable}.`] : []),
        ...(left > 0 ? [`Processes beyond those that one answer reads are left out: ${left}.`] : []),
      ],
    }
  }

  /** Who is near a limit. @throws Problem; SluiceError `STORE_UNAVAILABLE` */
  near(): Promise<NearAnswer> {
    const notes = notesIn(this.#notes, 'traffic')
    return this.#near.answer('near', () => clientsNear(this.#store, notes))
  }

  /** What is decided now. @throws Problem; SluiceError `STORE_UNAVAILABLE` */
  tail(body: TailBody): Promise<TailAnswer> {
    this.#tail ??= new Tail(notesIn(this.#notes, 'traffic'))
    return this.#tail.read(body)
  }

  async #sum(notes: SharedNotes, step: 'minute' | 'hour', first: number, last: number): Promise<Summed> {
    const stepMs = step === 'hour' ? HOUR_MS : MINUTE_MS
    await writeTraffic(this.#store)
    // Processes note when they have written last by their own clocks.
    const all = await notes.members(first * stepMs - HOUR_MS)
    const members = all.slice(-Math.max(1, Math.floor(MAX_TEXTS / (last - first + 1))))
    const counts = new TrafficCounts(MERGED)
    const seen = new Set<string>()
    let unreadable = 0
    for (let number = first; number <= last; number++) {
      for (let at = 0; at < members.length; at += AT_A_TIME) {
        const part = members.slice(at, at + AT_A_TIME)
        const texts = await notes.get(part.map((member) => topName(step, number, member)))
        for (const [i, text] of texts.entries()) {
          if (text === undefined) continue
          const found = countsIn(text)
          if (!found) unreadable++
          else counts.merge(found)
          if (found) seen.add(part[i] as string)
        }
      }
    }
    return { counts, processes: seen.size, unreadable, left: all.length - members.length }
  }
}

function withClient(entry: TrafficEntry, identity: string | undefined): TrafficEntry {
  return identity === undefined ? entry : { ...entry, client: textValue(identity) }
}
