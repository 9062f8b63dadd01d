import type { HeaderField, Verdict } from '@sluice/core'
import type { Outcome } from '@sluice/core/http'

/**
 * The source of a decision: the state in the store, this process alone as the store is away, or a list. `none` where no policy
 * is for the request, or where the request could not be counted.
 */
export type DecidedBy = 'store' | 'process' | 'list' | 'none'

/** The decision on a request. */
export interface Decision {
  readonly allowed: boolean
  /** The status of the client's response. 200 where it is allowed, which stands for that of the application. */
  readonly status: number
  readonly decidedBy: DecidedBy
  readonly verdict: Verdict | undefined
  /** The id of its charge; undefined unless charges are kept. */
  readonly id: string | undefined
  /** For the response to the client, whether it is refused or not. */
  readonly headers: readonly HeaderField[]
  /** The body of the response to a refused client; empty where it is allowed. */
  readonly body: string
}

const BY = { decided: 'store', unavailable: 'process', listed: 'list' } as const

/** An outcome as a decision. An outcome that is neither an admission nor a refusal with a status becomes a refusal. */
export function decisionOf({ proceed, verdict, headers, reply }: Outcome): Decision {
  const decidedBy = verdict ? BY[verdict.kind] : 'none'
  if (proceed) {
    return { allowed: true, status: 200, decidedBy, verdict, id: verdict?.id, headers, body: '' }
  }
  // The sender sets its length.
  const sent = headers.filter(([name]) => name.toLowerCase() !== 'content-length')
  const body = typeof reply?.body === 'string' ? reply.body : ''
  return { allowed: false, status: reply?.status ?? 500, decidedBy, verdict, id: undefined, headers: sent, body }
}

/** A refusal without a policy: the request could not be decided on. */
export function failedDecision(status: 400 | 500, detail?: string): Decision {
  const title = status === 400 ? 'Bad Request' : 'Internal Server Error'
  const headers: HeaderField[] = [
    ['Cache-Control', 'no-store'],
    ['Content-Type', 'application/problem+json; charset=utf-8'],
  ]
  const body = JSON.stringify({ type: 'about:blank', title, status, ...(detail !== undefined && { detail }) })
  return { allowed: false, status, decidedBy: 'none', verdict: undefined, id: undefined, headers, body }
}
