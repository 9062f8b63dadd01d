import type { Verdict } from '@sluice/core'
import type { ReadDocument } from '@sluice/policies'
import type { RecordContext } from '../replay/record-context.js'
import type { Interval } from '../report.js'
import type { PolicyAccount } from './accounts.js'
import { followsFromRequests } from './follows-from-requests.js'

/** A client that the longer window has refused: what each of both windows has admitted, the latest last. */
interface Parted {
  readonly shorter: number[]
  readonly longer: number[]
  isSurelyRefused: boolean
}

/** Many clients send no more requests. An array that grows has room for 16 more. */
const SMALL = 4

/**
 * How many requests and clients a policy refuses at least and at most, whatever their exact times are within the resolution of the
 * clock.
 *
 * Requests of one client are alike, so only the instants of those that are admitted matter. A log admits each as early as it can,
 * and no other choice has admitted more by then. Exact distances are less than a resolution from those in the log. So what the
 * exact times admit would be admitted by windows that are shorter by a resolution, and what windows that are longer by a
 * resolution admit would be admitted by the exact times: the first admit no fewer, the second no more.
 */
export class Bounds {
  readonly #limits: readonly { readonly limit: number; readonly windowMs: number }[]
  readonly #kept: number
  /** By row of the client: what is admitted, as long as that is sure. */
  readonly #clients: (number[] | Parted | undefined)[] = []
  #requests = { min: 0, max: 0 }
  #clientsRefused = { min: 0, max: 0 }
  #resolutionMs = 0
  #isBroken = false

  /** Undefined for policies whose refusals depend on more than the times of their requests. */
  static of(policy: PolicyAccount, { policies = {}, overrides = [] }: ReadDocument): Bounds | undefined {
    const isAnyBanning = Object.values(policies).some((each) => (each as { ban?: unknown }).ban !== undefined)
    const data = policies[policy.name] as Readonly<Record<string, unknown>>
    if (isAnyBanning || overrides.length > 0 || data.tiers !== undefined || !followsFromRequests(data)) return undefined
    if ((data.enforce as { percent?: unknown } | undefined)?.percent !== undefined) return undefined
    const limits = policy.limits.map(({ limit }) => limit)
    if (limits.length === 0 || limits.some(({ algorithm }) => algorithm !== 'slidingLog')) return undefined
    return new Bounds(limits.map(({ limit, window }) => ({ limit: Number(limit), windowMs: Number(window) })))
  }

  private constructor(limits: readonly { readonly limit: number; readonly windowMs: number }[]) {
    this.#limits = limits
    this.#kept = Math.max(...limits.map(({ limit }) => limit))
  }

  /** Undefined where they are not known. */
  get refused(): { readonly requests: Interval; readonly clients: Interval } | undefined {
    if (this.#isBroken || this.#resolutionMs <= 1) return undefined
    return { requests: this.#requests, clients: this.#clientsRefused }
  }

  /** Whether times are exact so far, so that there is nothing to bound. */
  get isExact(): boolean {
    return this.#resolutionMs <= 1 && !this.#isBroken
  }

  /**
   * The policy has decided on a request of a client with this row.
   *
   * @param isAlike whether the request costs one unit, and no policy has decided on it before
   */
  decided(
    isAlike: boolean,
    row: number,
    verdict: Verdict,
    { request: { startMs, resolutionMs } }: RecordContext,
  ): void {
    if (this.#isBroken) return
    if (resolutionMs > this.#resolutionMs) {
      // What came before was not kept.
      if (this.#resolutionMs === 1) this.#isBroken = true
      this.#resolutionMs = resolutionMs
    }
    if (!isAlike) this.break()
    if (this.#resolutionMs <= 1 || this.#isBroken) return
    if (verdict.reason === 'denied') {
      this.#requests.min++
      this.#requests.max++
    } else this.#count(row, startMs)
  }

  /** There are no bounds: requests are not alike, or another policy decides on them, too. */
  break(): void {
    this.#isBroken = true
    this.#clients.length = 0
  }

  #count(row: number, at: number): void {
    // Rows come in any order.
    while (this.#clients.length <= row) this.#clients.push(undefined)
    const client = this.#clients[row]
    if (client === undefined) this.#clients[row] = this.#admits([], at, true) ? [at] : this.#part(row, [], at)
    else if (!Array.isArray(client)) this.#countParted(client, at)
    else if (!this.#admits(client, at, true)) this.#part(row, client, at)
    else if (client.length < SMALL) this.#clients[row] = [...client, at]
    else this.#add(client, at)
  }

  #part(row: number, admitted: number[], at: number): Parted {
    const parted = { shorter: [...admitted], longer: admitted, isSurelyRefused: false }
    this.#clients[row] = parted
    this.#clientsRefused.max++
    this.#countParted(parted, at)
    return parted
  }

  #countParted(client: Parted, at: number): void {
    if (this.#admits(client.longer, at, true)) this.#add(client.longer, at)
    else this.#requests.max++
    if (this.#admits(client.shorter, at, false)) {
      this.#add(client.shorter, at)
      return
    }
    this.#requests.min++
    if (!client.isSurelyRefused) this.#clientsRefused.min++
    client.isSurelyRefused = true
  }

  #admits(admitted: readonly number[], at: number, isLonger: boolean): boolean {
    const { length } = admitted
    const sinceMs = at + (isLonger ? 1 - this.#resolutionMs : this.#resolutionMs - 1)
    for (const { limit, windowMs } of this.#limits) {
      if (limit === 0) return false
      if (length >= limit && sinceMs - (admitted[length - limit] as number) < windowMs) return false
    }
    return true
  }

  #add(admitted: number[], at: number): void {
    if (admitted.length >= 2 * this.#kept + SMALL) admitted.splice(0, admitted.length - this.#kept)
    admitted.push(at)
  }
}
