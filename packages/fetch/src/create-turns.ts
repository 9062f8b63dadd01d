import type { Units } from '@sluice/core'
import type { OutboundOptions, OutboundRequest } from './options.js'
import type { QuotaSource } from './quota/quota-types.js'
import { readQuota } from './quota/read-quota.js'
import { type MeteredTurn, turnsOf } from './turns/turns-of.js'

/** A request that may be sent now. Call one of both methods once: until then, it counts as in flight. */
export interface OutboundTurn {
  /**
   * Takes in the status and headers of the response, so that the requests after it wait as the service wants.
   *
   * Resolves once all requests of its key know. Never rejects.
   */
  answered(response: QuotaSource): Promise<void>
  /** No response came. */
  failed(): void
  /**
   * Replaces what it was charged by what it has cost, such as `{ tokens: 640 }`: each unit once. Without, the charge stays.
   *
   * @throws SluiceError `INVALID_COST`
   */
  settle(actual: Units): Promise<void>
}

/** Gives requests of any client their turns. */
export interface OutboundTurns {
  /**
   * Waits until the request may be sent.
   *
   * @throws SluiceError `WAIT_EXCEEDED`, `CIRCUIT_OPEN`; the reason of the signal
   */
  take(request: Pick<OutboundRequest, 'url'> & Partial<OutboundRequest>, signal?: AbortSignal): Promise<OutboundTurn>
}

/**
 * Turns for requests of any client, such as got or an SDK that takes no `fetch`.
 *
 * @throws SluiceError `INVALID_POLICY`
 * @example const turn = await turns.take({ url: new URL('https://api.github.com/zen') })
 */
export function createTurns(options: OutboundOptions = {}): OutboundTurns {
  const turns = meteredTurns(options)
  return {
    take: ({ url, method = 'GET', headers = new Headers(), body }, signal) =>
      turns.take({ url, method: method.toUpperCase(), headers, body }, signal),
  }
}

/** A turn whose response may be metered. */
export type MeteredOutboundTurn = OutboundTurn & Pick<MeteredTurn, 'meter'>

/** As `createTurns`, for those who see the bodies of responses. */
export function meteredTurns(options: OutboundOptions) {
  const turns = turnsOf(options)
  return {
    async take(request: OutboundRequest, signal?: AbortSignal): Promise<MeteredOutboundTurn> {
      const turn = await turns.of(request, signal)()
      let isOver = false
      const once = (): boolean => {
        const isFirst = !isOver
        isOver = true
        return isFirst
      }
      return {
        async answered(response) {
          if (!once()) return
          turn.ended(response.status)
          const quota = readQuota(response)
          await turn.answered(quota, quota.isRefusal)
        },
        failed() {
          if (!once()) return
          turn.ended(undefined)
          void turn.answered(undefined)
        },
        settle: turn.settle,
        meter: turn.meter,
      }
    },
  }
}
