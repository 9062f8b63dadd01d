import { REFUSALS } from '../../verdict/refusals.js'
import { isBarred, type Verdict } from '../../verdict/verdict.js'
import { sentWaitMs } from '../headers/sent-wait.js'
import { type HeaderField, retryAfterSeconds } from '../headers/writer.js'
import type { Reply } from './responder.js'

const TYPES = 'https://iana.org/assignments/http-problem-types'

export type RefusalStatus = 429 | 503
export type SentStatus = RefusalStatus | 403

/** The status of a refusal; `status` is that of a request over the limit. */
export function refusalStatus({ reason }: Verdict, status: RefusalStatus): SentStatus {
  return (reason && REFUSALS[reason].status) ?? status
}

/** The refusal of a request for its content, whatever its quota. `detail`: undefined for none. */
export function problemReply(
  status: number,
  title: string,
  detail: string | undefined,
  more: readonly HeaderField[],
): Reply & { readonly body: string } {
  return {
    status,
    headers: [['Content-Type', 'application/problem+json; charset=utf-8'], ...more],
    body: JSON.stringify({ type: 'about:blank', title, status, detail }),
    showsQuota: false,
  }
}

/** Problem details of a refusal, as JSON: RFC 9457, with the types of draft-ietf-httpapi-ratelimit-headers. */
export function problem(verdict: Verdict, status: SentStatus): object {
  const { reason } = verdict
  if (reason === 'denied') return { type: 'about:blank', title: 'Forbidden', status }
  if (isBarred(verdict)) return { type: `${TYPES}#abnormal-usage-detected`, title: ABNORMAL, status }
  const isReduced = status === 503
  const violated = verdict.limits.filter(({ allowed }) => !allowed).map(({ name }) => name)
  return {
    type: `${TYPES}#${isReduced ? 'temporary-reduced-capacity' : 'quota-exceeded'}`,
    title: isReduced ? REDUCED : EXCEEDED,
    status,
    detail: reason === 'impossible' ? IMPOSSIBLE : undefined,
    'violated-policies': reason === 'unavailable' ? undefined : violated,
  }
}

const ABNORMAL = 'Request cannot be satisfied due to abnormal usage'
const EXCEEDED = 'Request cannot be satisfied as assigned quota has been exceeded'
const REDUCED = 'Request cannot be satisfied due to temporary server capacity constraints'
const IMPOSSIBLE = 'This request costs more than its quota ever holds, so repeating it cannot succeed.'

/** The same in one line of text, for clients that do not read JSON. */
export function plainProblem(verdict: Verdict, status: SentStatus): string {
  const { reason } = verdict
  if (reason === 'impossible') return `Too many requests: ${IMPOSSIBLE}\n`
  const what = (reason && REFUSALS[reason].words) ?? (status === 503 ? 'At reduced capacity' : 'Too many requests')
  const waitMs = sentWaitMs(verdict)
  return waitMs === undefined ? `${what}\n` : `${what}: try again in ${retryAfterSeconds(waitMs)} s.\n`
}
