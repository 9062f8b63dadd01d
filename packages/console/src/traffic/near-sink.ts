import type { DecisionEvent, Limit } from '@sluice/core'
import { decisionIn, policyOfLimit, type ReadablePlan, type SharedNotes } from '@sluice/core/internal'
import { clientsOf, type Sink } from './decisions.js'
import { beforeInNear, isNear, NEAR, type NearRow, nearText } from './near-text.js'
import { SKEW_MS } from './top-sink.js'

/** Clients of a process. Beyond, those are dropped whose use was seen longest ago. */
const MAX_CLIENTS = 2000
/** Rows that are written: those with the most in use, of which some is left. */
const MAX_WRITTEN = 200
/** Rows end with the use that they tell of, at the latest after as long, in ms. */
const LIFE_MS = 3_600_000
/** Seconds between two texts. */
const WRITE_EVERY = 10

/** The name of the text of a process. */
export const nearName = (member: string): string => `near:${member}`

type Near = Omit<NearRow, 'client'>

/** Keeps the clients that have used more than `NEAR` of a limit. */
export class NearSink implements Sink {
  readonly #notes: SharedNotes
  readonly #member: string
  /** By client, and by limit. The one that was seen last is the last. */
  readonly #clients = new Map<string, Map<string, Near>>()
  #ticks = 0
  #isNew = false
  #checkedAt = Date.now()

  constructor(notes: SharedNotes, member: string) {
    this.#notes = notes
    this.#member = member
  }

  note(event: DecisionEvent): void {
    const { used = 0 } = event
    // Nearly every request of nearly every service ends here.
    if (used < NEAR && (this.#clients.size === 0 || !clientsOf(event).some((client) => this.#clients.has(client))))
      return
    const { verdict } = event
    const { request } = decisionIn(verdict)
    const { cells, cellOf, definitions } = request.plan as ReadablePlan
    const now = this.#notes.now()
    for (const [i, { name, capacity, remaining, resetAfterMs }] of verdict.limits.entries()) {
      const client = request.identities[cells[cellOf[i] as number]?.identity as number] as string
      const share = capacity > 0 ? 1 - remaining / capacity : 1
      this.#set(client, {
        policy: policyOfLimit(definitions[i] as Limit, event.policy),
        limit: name,
        used: share,
        remaining,
        at: now,
        until: now + Math.min(resetAfterMs, LIFE_MS),
      })
    }
  }

  #set(client: string, near: Near): void {
    const key = `${near.policy.length} ${near.policy}${near.limit}`
    const limits = this.#clients.get(client)
    this.#isNew = true
    if (!isNear(near)) {
      limits?.delete(key)
      if (limits?.size === 0) this.#clients.delete(client)
      return
    }
    this.#clients.delete(client)
    this.#clients.set(client, (limits ?? new Map()).set(key, near))
    if (this.#clients.size <= MAX_CLIENTS) return
    const [oldest = ''] = this.#clients.keys()
    this.#clients.delete(oldest)
  }

  async tick(): Promise<void> {
    if (++this.#ticks % WRITE_EVERY === 0) await this.write()
  }

  async write(): Promise<void> {
    if (!this.#isNew) return
    this.#isNew = false
    try {
      const isForgotten = await this.#notes.forgottenSince(this.#checkedAt - SKEW_MS)
      this.#checkedAt = Date.now()
      if (isForgotten)
        for (const client of [...this.#clients.keys()]) if (isForgotten(client)) this.#clients.delete(client)
      const rows = this.#rows()
      const clients = [...new Set(rows.map(({ client }) => client))]
      await this.#notes.join(this.#member)
      const ids = await this.#notes.idsOf(clients, LIFE_MS)
      const idOf = new Map(clients.map((client, i) => [client, ids[i] as string]))
      const text = nearText(rows.map((row) => ({ ...row, client: idOf.get(row.client) as string })))
      await this.#notes.set(nearName(this.#member), text, LIFE_MS)
    } catch (error) {
      this.#isNew = true
      throw error
    }
  }

  /** Those that are written. */
  #rows(): NearRow[] {
    const now = this.#notes.now()
    const rows: NearRow[] = []
    for (const [client, limits] of this.#clients) {
      for (const [key, near] of limits) {
        if (near.until > now) rows.push({ ...near, client })
        else limits.delete(key)
      }
      if (limits.size === 0) this.#clients.delete(client)
    }
    return rows.sort(beforeInNear).slice(0, MAX_WRITTEN)
  }
}
