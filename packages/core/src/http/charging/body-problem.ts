import type { IncomingMessage } from 'node:http'
import type { Reply } from '../responders/responder.js'

/** A refusal of a request for its body alone: RFC 9457. A body that is not read keeps its connection from being used again, so that is closed. */
export function bodyProblem(
  raw: IncomingMessage,
  status: 411 | 413,
  title: string,
  detail: string,
): Reply & { readonly body: string } {
  return {
    status,
    headers: [
      ['Cache-Control', 'no-store'],
      ['Content-Type', 'application/problem+json; charset=utf-8'],
      // HTTP/2 knows no such field.
      ...(raw.httpVersionMajor === 1 ? ([['Connection', 'close']] as const) : []),
    ],
    body: JSON.stringify({ type: 'about:blank', title, status, detail }),
    showsQuota: false,
  }
}
