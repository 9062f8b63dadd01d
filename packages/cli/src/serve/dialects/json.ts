import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { ownFieldsOf } from '@sluice/core/internal'
import { BadInput } from '../bad-input.js'
import { SLICE_MS } from '../bounds.js'
import { changeCharge, type RequestLimiter } from '../charges.js'
import type { Decide } from '../decider.js'
import type { Decision } from '../decision.js'
import type { DescribedRequest } from '../described-request.js'
import { readJson } from '../read-json.js'
import { describedIn } from './described-in.js'
import type { Dialect, DialectSettings } from './dialect.js'

/** `POST /v1/decide`: a request, or a batch of them, as JSON. */
export const jsonDialect: Dialect = {
  refusalOf: undefined,
  readsHeaders: false,
  namesKeys: true,
  proxyRemedy: "let callers send the client's own address as ip",
  async answer(request, response, { decide, token, named }) {
    checkCaller(request, token)
    const { requests, isBatch } = describedIn(await readJson(request), named)
    const decisions = await decideAll(requests, decide)
    const found = decisions.map(jsonOf)
    send(isBatch ? { decisions: found } : (found[0] as object), response)
  },
}

/** In one turn of the event loop, so that all of them share one call of Redis; in several turns where that takes long. */
async function decideAll(requests: readonly DescribedRequest[], decide: Decide): Promise<readonly Decision[]> {
  const decisions: (Decision | Promise<Decision>)[] = []
  let since = performance.now()
  for (const request of requests) {
    if (performance.now() - since >= SLICE_MS) {
      await setImmediate()
      since = performance.now()
    }
    decisions.push(decide(request))
  }
  return Promise.all(decisions)
}

/** `POST /v1/settle` and the like: changes a charge by the id of its decision. */
export async function answerChange(
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
  { token, limiter }: Pick<DialectSettings, 'token'> & { readonly limiter: RequestLimiter },
): Promise<void> {
  checkCaller(request, token)
  send({ outcome: await changeCharge(name, await readJson(request), limiter) }, response)
}

function checkCaller(request: IncomingMessage, token: DialectSettings['token']): void {
  const { origin, authorization } = ownFieldsOf(request.headers)
  if (request.method !== 'POST') throw new BadInput(405, 'expected POST', { ends: true })
  // Otherwise a page in a browser on this machine could send requests.
  if (origin !== undefined) throw new BadInput(403, 'expected no Origin: browsers are not served', { ends: true })
  if (token && !token.isShownIn(authorization)) {
    throw new BadInput(401, 'expected the token of this decider: Authorization: Bearer …', { ends: true })
  }
}

function jsonOf({ allowed, status, decidedBy, verdict, id, headers, body }: Decision): object {
  return {
    allowed,
    status,
    decidedBy,
    ...(id !== undefined && { id }),
    ...(verdict && {
      ...(verdict.reason && { reason: verdict.reason }),
      ...(verdict.retryAfterMs !== undefined && !allowed && { retryAfterMs: verdict.retryAfterMs }),
      ...(verdict.reported && { reported: true, wouldBeAllowed: verdict.allowed }),
      limits: verdict.limits,
    }),
    headers: Object.fromEntries(headers),
    ...(!allowed && { body }),
  }
}

function send(value: object, response: ServerResponse): void {
  const text = JSON.stringify(value)
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.end(text)
}
