import type { Answer } from './server.js'

/** The content of a response to a probe. Nothing in it is a secret, as probes show no token. */
export interface Health {
  /** Whether it should get requests: not once a signal has requested its end, though it decides on those that still come. */
  readonly isReady: boolean
  /** Whether the store is available. Where it is not, each process decides by itself, and is ready all the same. */
  readonly store: 'available' | 'unavailable'
  /** The version of the document in force. */
  readonly version: string
  /** Whether the present document is in force: not where it is wrong, or cannot be read. */
  readonly isCurrent: boolean
}

/** The routes of probes: whether the process lives, and whether it is to be sent requests. */
export function probes(healthNow: () => Health): readonly (readonly [path: string, Answer])[] {
  const answer =
    (statusOf: (health: Health) => number): Answer =>
    (_, response) => {
      const health = healthNow()
      const { isReady, store, version, isCurrent } = health
      const text = JSON.stringify({ ready: isReady, store, document: { version, current: isCurrent } })
      response.statusCode = statusOf(health)
      response.setHeader('Content-Type', 'application/json; charset=utf-8')
      response.setHeader('Cache-Control', 'no-store')
      response.setHeader('Content-Length', Buffer.byteLength(text))
      response.end(text)
    }
  return [
    ['/healthz', answer(() => 200)],
    ['/readyz', answer(({ isReady }) => (isReady ? 200 : 503))],
  ]
}
