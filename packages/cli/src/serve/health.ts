import type { ServerResponse } from 'node:http'

/** What a probe gets. Nothing in it is a secret, as probes show no token. */
export interface Health {
  /** Whether it takes requests: no more, once it was asked to end. */
  readonly isReady: boolean
  /** Whether the store can be asked; where it cannot, each process decides by itself, and is ready all the same. */
  readonly store: 'available' | 'unavailable'
  /** Of the document in force. */
  readonly version: string
  /** Whether the document as it is now is in force: not where it is wrong, or cannot be read. */
  readonly isCurrent: boolean
}

/** Answers `/healthz` and `/readyz`; false for any other path. */
export function answerProbe(path: string, response: ServerResponse, healthNow: () => Health): boolean {
  if (path !== '/healthz' && path !== '/readyz') return false
  const { isReady, store, version, isCurrent } = healthNow()
  const text = JSON.stringify({ ready: isReady, store, document: { version, current: isCurrent } })
  response.statusCode = path === '/readyz' && !isReady ? 503 : 200
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.end(text)
  return true
}
