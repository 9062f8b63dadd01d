import { optionalFunction } from '@sluice/core/internal'
import type { LimitedFetchOptions, ResponseKind } from './options.js'
import type { Quota } from './quota/quota-types.js'
import { readQuota } from './quota/read-quota.js'
import type { MeteredTurn } from './turns/turns-of.js'
import { metered } from './usage/metered-response.js'
import { warnOnce } from './warn-once.js'

type Fetch = typeof globalThis.fetch

/** A response, and whether it refuses its request. */
interface Received {
  readonly response: Response
  readonly isRefused: boolean
}

/** Sends requests that have their turns, and takes in the responses. */
export class Sender {
  readonly #fetch: Fetch
  readonly #kindOf: LimitedFetchOptions['kindOf']
  readonly #warn: (error: unknown) => void

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(where: string, fetch: Fetch, kindOf: LimitedFetchOptions['kindOf']) {
    optionalFunction(where, 'kindOf', kindOf)
    this.#fetch = fetch
    this.#kindOf = kindOf
    this.#warn = warnOnce(where, 'kindOf')
  }

  async send(turn: MeteredTurn, signal: AbortSignal | undefined, ...request: Parameters<Fetch>): Promise<Received> {
    const fetch = this.#fetch
    let quota: Quota | undefined
    let kind: ResponseKind = 'accepted'
    let status: number | undefined
    try {
      const response = await fetch(...request)
      status = response.status
      quota = readQuota(response)
      kind = quota.isRefusal ? 'refused' : 'accepted'
      kind = (await this.#kindIn(response, quota, signal)) ?? kind
      return { response: metered(response, turn.meter(response)), isRefused: kind === 'refused' }
    } finally {
      turn.ended(status)
      const holds = quota?.isRefusal && kind !== 'refused' ? { ...quota, holdMs: 0 } : quota
      await turn.answered(holds, kind === 'refused')
    }
  }

  /** Undefined where status and headers tell the kind. A `kindOf` that fails loses no response. */
  async #kindIn(response: Response, quota: Quota, signal: AbortSignal | undefined): Promise<ResponseKind | undefined> {
    try {
      return await this.#kindOf?.(response, quota)
    } catch (error) {
      // The body of an aborted request cannot be read.
      if (!signal?.aborted) this.#warn(error)
      return undefined
    }
  }
}
