import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Dialect = 'github' | 'openai' | 'anthropic' | 'ietf' | 'bare' | 'retry-after'

/** A service with a limit that its clients are not told beforehand. */
export interface Service {
  readonly url: string
  /** Requests a window; a test changes it midway. */
  limit: number
  readonly admitted: number
  /** The requests of which each 429 came: the instants at which they arrived. */
  readonly refusedAt: readonly number[]
  /** The requests that had arrived when the first response left. */
  readonly arrivedBeforeResponse: number
  /** The instants at which requests arrived, refused ones included. */
  readonly arrivedAt: readonly number[]
  close(): Promise<void>
}

export interface ServiceOptions {
  readonly dialect: Dialect
  readonly limit: number
  readonly windowMs: number
  readonly latencyMs?: number
  /** The `Retry-After` of the dialect of that name, in seconds. @default 60 */
  readonly retryAfter?: number
}

/**
 * A server on a free port that counts by fixed windows, and by a bucket in the dialects of OpenAI and Anthropic. Its clock begins a
 * day ahead, which its `Date` tells.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { dialect, limit, windowMs, latencyMs = 5, retryAfter = 60 } = options
  const clock = () => Date.now() + 86_400_000
  const isBucket = dialect === 'openai' || dialect === 'anthropic'
  const state = {
    limit,
    admitted: 0,
    arrivedBeforeResponse: 0,
    refusedAt: [] as number[],
    arrivedAt: [] as number[],
  }
  let [used, since] = [0, Date.now()]

  const server = createServer((_request: IncomingMessage, response: ServerResponse) => {
    const now = Date.now()
    const elapsed = now - since
    if (isBucket) [used, since] = [Math.max(0, used - (elapsed * state.limit) / windowMs), now]
    else if (elapsed >= windowMs) [used, since] = [0, since + elapsed - (elapsed % windowMs)]
    state.arrivedAt.push(now)
    const isAdmitted = used + 1 <= state.limit
    if (isAdmitted) used++
    if (isAdmitted) state.admitted++
    else state.refusedAt.push(now)
    const remaining = Math.max(0, Math.floor(state.limit - used))
    const resetMs = isBucket ? (used * windowMs) / state.limit : since + windowMs - now
    const headers = headersOf(dialect, state.limit, remaining, resetMs, isAdmitted ? undefined : retryAfter, clock())
    const status = isAdmitted ? 200 : dialect === 'github' ? 403 : 429
    setTimeout(() => {
      state.arrivedBeforeResponse ||= state.arrivedAt.length
      response.writeHead(status, { ...headers, Date: new Date(clock()).toUTCString() }).end('{}')
    }, latencyMs)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  })
}

function headersOf(
  dialect: Dialect,
  limit: number,
  remaining: number,
  resetMs: number,
  retryAfter: number | undefined,
  now: number,
): Record<string, string | number> {
  switch (dialect) {
    case 'github':
      return {
        'x-ratelimit-limit': limit,
        'x-ratelimit-remaining': remaining,
        'x-ratelimit-reset': Math.ceil((now + resetMs) / 1000),
        'x-ratelimit-resource': 'core',
      }
    case 'openai':
      return {
        'x-ratelimit-limit-requests': limit,
        'x-ratelimit-remaining-requests': remaining,
        'x-ratelimit-reset-requests': `${Math.ceil(resetMs)}ms`,
      }
    case 'anthropic':
      return {
        'anthropic-ratelimit-requests-limit': limit,
        'anthropic-ratelimit-requests-remaining': remaining,
        'anthropic-ratelimit-requests-reset': new Date(now + resetMs).toISOString(),
      }
    case 'ietf':
      return {
        RateLimit: `"default";r=${remaining};t=${Math.ceil(resetMs / 1000)}`,
        'RateLimit-Policy': `"default";q=${limit};w=1`,
      }
    case 'retry-after':
      return retryAfter === undefined ? {} : { 'Retry-After': retryAfter }
    case 'bare':
      return {}
  }
}
