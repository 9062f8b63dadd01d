import type { Verdict } from '../../verdict.js'
import type { HttpContext } from '../context.js'
import type { HeaderField } from '../headers/writer.js'

/** A request that a limit or a block refused, handed to a responder. */
export interface Refused<Request> {
  readonly context: HttpContext<Request>
  readonly verdict: Verdict
}

/** A response instead of the handler's. */
export interface Reply {
  readonly status: number
  /** Beside the quota headers; replace fields of the same name. */
  readonly headers: readonly HeaderField[]
  readonly body: string
  /** Whether quota headers and `Retry-After` go along. */
  readonly tellsQuota: boolean
}

/** What becomes of a refused request: a reply, `proceed` to the handler, or `gone` as the client left. */
export type Action = Reply | 'proceed' | 'gone'

/** Decides what becomes of a refused request. Without a promise where none is needed. */
export type Responder<Request = unknown> = (refused: Refused<Request>) => Action | Promise<Action>
