import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OffendersWindow, Store } from '@sluice/core'
import { ownFieldsOf } from '@sluice/core/internal'
import { OFFENDERS } from '@sluice/core/store'
import { BadInput } from './bad-input.js'
import { type HostSettings, hostCheck } from './hosts.js'
import type { Metrics } from './metrics.js'
import { type Answer, type RunningServer, type ServerSettings, startServer } from './server.js'
import type { Token } from './token.js'

/** A listener of its own: no gateway passes clients on to it. */
export interface MetricsSettings
  extends Pick<ServerSettings, 'host' | 'port' | 'maxConnections' | 'onProblem'>,
    HostSettings {}

/**
 * Shows metrics and, where a store is given, the identities that it refuses most.
 *
 * @throws Node's error where it cannot listen
 */
export function startMetricsServer(
  settings: MetricsSettings,
  metrics: Metrics,
  store: Store | undefined,
): Promise<RunningServer> {
  const { host, port, tls, maxConnections, onProblem, token } = settings
  const guarded =
    (answer: Answer): Answer =>
    (request, response) => {
      checkCaller(request, token)
      return answer(request, response)
    }
  const routes = new Map<string, Answer>([
    ['/metrics', guarded(async (_, response) => sendText(await metrics.read(), response))],
  ])
  if (store)
    routes.set(
      '/offenders',
      guarded(async ({ url }, response) => sendOffenders(url, store, response)),
    )
  return startServer({
    host,
    port,
    tls,
    maxConnections,
    onProblem,
    routes,
    refusalOf: undefined,
    checkHost: hostCheck(settings, false),
    leaving: undefined,
  })
}

function checkCaller({ method, headers }: IncomingMessage, token: Token | undefined): void {
  if (method !== 'GET' && method !== 'HEAD') throw new BadInput(405, 'expected GET', { ends: true })
  if (token && !token.isShownIn(ownFieldsOf(headers).authorization)) {
    throw new BadInput(401, 'expected the token of this decider: Authorization: Bearer …', { ends: true })
  }
}

const WINDOWS: readonly string[] = ['10m', '1h', '1d'] satisfies OffendersWindow[]

/** Sends the report that `?policy=NAME&in=1h&top=20` names. */
async function sendOffenders(url = '', store: Store, response: ServerResponse): Promise<void> {
  const query = new URL(url, 'http://decider').searchParams
  const unknown = [...query.keys()].find((name) => !['policy', 'in', 'top'].includes(name))
  const policy = query.get('policy')
  const window = query.get('in') ?? '1h'
  const top = query.get('top') ?? '20'
  if (unknown !== undefined)
    throw new BadInput(400, `${JSON.stringify(unknown.slice(0, 40))}: expected policy, in, top`)
  if (!policy) throw new BadInput(400, 'policy: expected the name of a policy')
  if (!WINDOWS.includes(window)) throw new BadInput(400, 'in: expected 10m, 1h or 1d')
  if (!/^\d{1,4}$/.test(top) || Number(top) < 1 || Number(top) > 1000) {
    throw new BadInput(400, 'top: expected a whole number from 1 to 1000')
  }
  const report = await store[OFFENDERS]?.report({ policy, top: Number(top), in: window as OffendersWindow })
  send(`${JSON.stringify(report)}\n`, 'application/json; charset=utf-8', response)
}

function sendText(text: string, response: ServerResponse): void {
  send(text, 'text/plain; version=0.0.4; charset=utf-8', response)
}

function send(text: string, type: string, response: ServerResponse): void {
  response.setHeader('Content-Type', type)
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.end(text)
}
