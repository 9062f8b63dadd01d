import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { isThenable } from '../../util/thenable.js'
import { knownOptions } from '../../util/validate.js'
import type { Verdict } from '../../verdict/verdict.js'
import { prefersJson } from '../response/negotiate.js'
import { plainProblem, problem, type RefusalStatus, refusalStatus } from './problem.js'
import type { Refused, Reply, Responder } from './responder.js'

/** Text, or an object that is sent as JSON. */
export type RejectBody = string | object

export interface RejectOptions<Request> {
  /**
   * 429 means that the client sends too much, 503 that the server has little capacity.
   *
   * List denials are always 403. Blocks, and costs that can never fit, are always 429. A refusal because nothing could
   * decide is always 503.
   * @default 429
   */
  readonly status?: RefusalStatus
  /** @default problem details as JSON, or a line of text for clients that do not accept JSON */
  readonly body?: RejectBody | ((request: Request, verdict: Verdict) => RejectBody | Promise<RejectBody>)
}

/**
 * Refuses at once, and reports the wait.
 *
 * @example reject({ status: 503, body: { error: 'busy' } })
 * @throws SluiceError `INVALID_POLICY`
 */
export function reject<Request>(options: RejectOptions<Request> = {}): Responder<Request> {
  knownOptions('reject', options, ['status', 'body'])
  const { status = 429, body } = options
  if (status !== 429 && status !== 503) invalidPolicy('reject', 'status', '429 or 503', status)
  if (body !== undefined && typeof body !== 'function') checkedBody(body)

  function reject({ context, verdict }: Refused<Request>): Reply | Promise<Reply> {
    const sent = refusalStatus(verdict, status)
    if (body === undefined) {
      return prefersJson(context.header('accept'))
        ? reply(sent, 'application/problem+json; charset=utf-8', JSON.stringify(problem(verdict, sent)))
        : reply(sent, TEXT, plainProblem(verdict, sent))
    }
    const content = typeof body === 'function' ? body(context.request, verdict) : body
    return isThenable(content) ? Promise.resolve(content).then((late) => ownReply(sent, late)) : ownReply(sent, content)
  }
  return Object.assign(reject, { whenUnavailable: reject })
}

const TEXT = 'text/plain; charset=utf-8'

function ownReply(status: number, body: RejectBody): Reply {
  checkedBody(body)
  return typeof body === 'string'
    ? reply(status, TEXT, body)
    : reply(status, 'application/json; charset=utf-8', JSON.stringify(body))
}

function reply(status: number, contentType: string, body: string): Reply {
  return { status, headers: [['Content-Type', contentType]], body, showsQuota: true }
}

function checkedBody(body: unknown): void {
  if (typeof body === 'string' || (typeof body === 'object' && body !== null)) return
  invalidPolicy('reject', 'body', 'a string or an object', body)
}

knowFactories({ 'reject()': reject })
