import type { DecisionEvent } from '@sluice/core'
import type { SharedNotes } from '@sluice/core/internal'
import { clientsOf, isRefusal, LOOKED_AT, networkOf, Paths, policiesOf, reasonOf, type Sink } from './decisions.js'
import { policyNames, TrafficCounts } from './traffic-counts.js'
import { clientsIn, textOf } from './traffic-text.js'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
/** How long minutes and hours are kept, in ms: a day, and the step that has begun before it. */
const KEPT_MS = { minute: 86_700_000, hour: 90_000_000 } as const
/** Ids in texts resolve as long. */
const ID_MS = 90_000_000
/** Different requests that are gathered before they are counted: few enough to take no more than a few ms. */
const MAX_GATHERED = 256
/** Seconds between two texts of the present minute. */
const WRITE_EVERY = 10
/** Minutes and hours that wait for the store to come back. */
const MAX_UNSENT = 60
/** An identity that was forgotten by a process with another clock is noticed within as long, in ms. */
export const SKEW_MS = 60_000

/** The name of the text of a process. */
export const topName = (step: 'minute' | 'hour', number: number, member: string): string =>
  `top:${step[0]}:${number}:${member}`

/** Equal requests. */
interface Gathered {
  /** The names of its policies, joined. */
  readonly policy: string
  readonly reason: string
  readonly path: string
  readonly clients: readonly string[]
  count: number
}

/** Counts the decisions of this process by policy, reason, path, client and network, and writes them by minutes and hours. */
export class TopSink implements Sink {
  readonly #notes: SharedNotes
  readonly #member: string
  readonly #paths = new Paths()
  #gathered = new Map<string, Gathered>()
  #minute: { readonly number: number; readonly counts: TrafficCounts }
  #hour: { readonly number: number; readonly counts: TrafficCounts }
  /** By names, the oldest first. */
  readonly #unsent = new Map<string, { readonly counts: TrafficCounts; readonly forMs: number }>()
  #ticks = 0
  #isNew = false
  #checkedAt = Date.now()

  constructor(notes: SharedNotes, member: string) {
    this.#notes = notes
    this.#member = member
    const now = notes.now()
    this.#minute = { number: Math.floor(now / MINUTE_MS), counts: new TrafficCounts() }
    this.#hour = { number: Math.floor(now / HOUR_MS), counts: new TrafficCounts() }
  }

  note(event: DecisionEvent): void {
    const { path = '' } = event
    const policy = policyNames.join(policiesOf(event))
    const reason = reasonOf(event)
    const clients = clientsOf(event)
    const start = path.length > LOOKED_AT ? path.slice(0, LOOKED_AT) : path
    // Lengths, as values may hold any character: different requests have different keys.
    let key = `${policy.length} ${start.length} ${policy}${start}${reason}`
    for (const client of clients) key += ` ${client.length} ${client}`
    const known = this.#gathered.get(key)
    if (known) {
      known.count++
      return
    }
    this.#gathered.set(key, { policy, reason, path: start, clients, count: 1 })
    if (this.#gathered.size >= MAX_GATHERED) this.#count()
  }

  async tick(): Promise<void> {
    this.#count()
    if (++this.#ticks % WRITE_EVERY === 0 || this.#unsent.size > 0) await this.write()
  }

  /** Writes what is new. */
  async write(): Promise<void> {
    this.#count()
    if (!this.#isNew && this.#unsent.size === 0) return
    this.#isNew = false
    try {
      await this.#dropForgotten()
      await this.#notes.join(this.#member)
      for (const [name, { counts, forMs }] of this.#unsent) {
        await this.#send(name, counts, forMs)
        this.#unsent.delete(name)
      }
      const { number, counts } = this.#minute
      await this.#send(topName('minute', number, this.#member), counts, KEPT_MS.minute)
    } catch (error) {
      this.#isNew = true
      throw error
    }
  }

  async #send(name: string, counts: TrafficCounts, forMs: number): Promise<void> {
    const part = counts.largest()
    const clients = clientsIn(part)
    const ids = await this.#notes.idsOf(clients, ID_MS)
    const text = textOf(part, new Map(clients.map((client, i) => [client, ids[i] as string])))
    await this.#notes.set(name, text, forMs)
  }

  /** Counts what was gathered. */
  #count(): void {
    this.#turn()
    if (this.#gathered.size === 0) return
    const { counts } = this.#minute
    for (const { policy, reason, path, clients, count } of this.#gathered.values()) {
      const row = { policy, reason, path: path && this.#paths.of(path), refused: isRefusal(reason) ? '1' : '' }
      counts.add(
        row,
        clients.map((client) => ({ client, network: networkOf(client) ?? '' })),
        count,
      )
    }
    this.#gathered = new Map()
    this.#isNew = true
  }

  /** Begins another minute where it is time. */
  #turn(): void {
    const now = this.#notes.now()
    const number = Math.floor(now / MINUTE_MS)
    // A clock that steps back changes nothing.
    if (number <= this.#minute.number) return
    const { counts } = this.#minute
    if (counts.decisions > 0) {
      const hour = Math.floor((this.#minute.number * MINUTE_MS) / HOUR_MS)
      if (hour !== this.#hour.number) this.#hour = { number: hour, counts: new TrafficCounts() }
      this.#hour.counts.merge(counts)
      this.#keep('minute', this.#minute.number, counts.largest())
      this.#keep('hour', hour, this.#hour.counts)
    }
    this.#minute = { number, counts: new TrafficCounts() }
  }

  #keep(step: 'minute' | 'hour', number: number, counts: TrafficCounts): void {
    this.#unsent.set(topName(step, number, this.#member), { counts, forMs: KEPT_MS[step] })
    const [oldest] = this.#unsent.keys()
    if (this.#unsent.size > MAX_UNSENT && oldest !== undefined) this.#unsent.delete(oldest)
  }

  async #dropForgotten(): Promise<void> {
    const isForgotten = await this.#notes.forgottenSince(this.#checkedAt - SKEW_MS)
    this.#checkedAt = Date.now()
    if (!isForgotten) return
    const all = [this.#minute, this.#hour, ...this.#unsent.values()]
    for (const { counts } of all) counts.drop(isForgotten)
  }
}
