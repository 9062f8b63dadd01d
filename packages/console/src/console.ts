import { SluiceError, type Store } from '@sluice/core'
import { isPropertyOf, ownFieldsOf } from '@sluice/core/internal'
import { readBody } from './body.js'
import type { Exchange, Reply } from './exchange.js'
import { consoleFigures } from './figures/parts.js'
import { openApi } from './openapi.js'
import { type CheckedOptions, type ConsoleOptions, checkedOptions } from './options.js'
import { PAGE_ROUTES } from './page/page.js'
import { messageOf, Problem } from './problem.js'
import { recordRefusals } from './refusals.js'
import { jsonReply, jsonText, problemReply, Stream, send, sendStream } from './reply.js'
import { ROUTES } from './routes/index.js'
import type { Route } from './routes/route.js'
import { operatorOf } from './safe/authorize.js'
import { checkHost } from './safe/hosts.js'
import { makeOwnLimiter } from './safe/own-limiter.js'
import { checkForm, checkOrigin } from './safe/same-origin.js'
import { checkedBody } from './schema.js'
import { ClientIds } from './traffic/client-ids.js'
import { recordTraffic } from './traffic/record-traffic.js'
import { Traffic } from './traffic/traffic.js'
import { warn } from './warn.js'

/** A request for everyone who reaches the console: it has no data. */
export interface OpenRoute {
  readonly method: 'GET' | 'POST'
  run(exchange: Exchange): Reply | Promise<Reply>
}

/** A console, as adapters call it. */
export interface Console<Request> {
  /** Answers a request. Never rejects. */
  serve(exchange: Exchange<Request>): Promise<void>
  /** Ends its streams, and the notes of refusals and the figures of this process. */
  close(): void
}

/** Parts of a console that listens by itself. */
export interface OwnServer {
  /** Routes before `authorize`. */
  readonly open?: Readonly<Record<string, OpenRoute>>
  /** Routes of its own, beside those of every console. */
  readonly routes?: readonly Route[]
  /** Checks each request before anything else. @throws Problem */
  readonly check?: (exchange: Exchange) => void
  /** Whether this process has limiters, whose counts it reports. @default true */
  readonly reports?: boolean
}

const DOCUMENT = '/api/openapi.json'

/** @throws SluiceError `INVALID_POLICY` */
export function makeConsole<Request>(
  given: ConsoleOptions<Request>,
  { open = {}, routes: own = [], check, reports = true }: OwnServer = {},
): Console<Request> {
  const options = checkedOptions(given)
  const askLimiter = makeOwnLimiter()
  const stops = [recordRefusals(options.store), ...(options.traffic ? [recordTraffic(options.store)] : [])]
  const toProblem = (error: unknown) => problemOf(error, options.store)[0]
  const figures = consoleFigures(options.store, { problemOf: toProblem, text: jsonText }, reports)
  const clientIds = new ClientIds(options.store)
  const parts = { figures, clientIds, traffic: new Traffic(options.store, clientIds) }
  const all = [...ROUTES, ...own]
  const routes = new Map(all.map((route) => [route.path, route]))
  const documentText = openApi(all)
  const opened: Readonly<Record<string, OpenRoute>> = { ...PAGE_ROUTES, ...open }

  async function replyTo(exchange: Exchange<Request>): Promise<Reply | Stream> {
    const { raw, path, ip } = exchange
    checkHost(raw, options.hosts)
    check?.(exchange)
    await askLimiter(ip)
    checkOrigin(raw)
    const found = Object.hasOwn(opened, path) ? opened[path] : undefined
    const route = found ?? routes.get(path) ?? (path === DOCUMENT ? ({ method: 'GET' } as const) : undefined)
    if (!route) throw new Problem(404, 'the console has no such path')
    checkMethod(raw.method, route.method)
    if (route.method === 'POST') checkForm(raw)
    if (found) return found.run(exchange)
    const ask = () => operatorOf(options.authorize, exchange.request)
    const operator = await ask()
    if (path === DOCUMENT) return jsonReply(documentText)
    const { may, body: schema, run } = ownFieldsOf(route as Route)
    if (may === 'act' && options.readOnly) throw new Problem(403, 'this console is read only')
    if (may === 'act' && operator.may !== 'act') throw new Problem(403, 'this operator may only read')
    const body = schema && checkedBody(await readBody(exchange), schema)
    const call = { console: options as CheckedOptions<never>, body: body as never, operator, ip, ask, ...parts }
    const answer = await run(call)
    return answer instanceof Stream ? answer : jsonReply(answer)
  }

  return {
    async serve(exchange) {
      const { raw, response } = exchange
      const failed = (error: unknown) => problemReply(...problemOf(error, options.store))
      const reply = await replyTo(exchange).catch(failed)
      const isHead = raw.method === 'HEAD'
      if (!(reply instanceof Stream)) return send(response, reply, isHead)
      try {
        sendStream(response, reply, isHead)
      } catch (error) {
        send(response, failed(error), isHead)
      }
    },
    close() {
      figures.close()
      for (const stop of stops) stop()
    },
  }
}

function checkMethod(method: string | undefined, expected: 'GET' | 'POST'): void {
  if (method === expected || (method === 'HEAD' && expected === 'GET')) return
  throw new MethodNotAllowed(expected)
}

class MethodNotAllowed extends Problem {
  readonly allow: string

  constructor(expected: 'GET' | 'POST') {
    super(405, `expected ${expected}`)
    this.allow = expected === 'GET' ? 'GET, HEAD' : expected
  }
}

/** The problem that an error is to its caller, and headers. An error of ours has a sentence; another shows nothing of itself. */
function problemOf(error: unknown, store: Store): [Problem, Record<string, string>?] {
  if (error instanceof MethodNotAllowed) return [error, { Allow: error.allow }]
  if (error instanceof Problem) return [error]
  if (error instanceof SluiceError) {
    if (error.code === 'STORE_UNAVAILABLE') return [outage(store)]
    if (error.code === 'STORE_FULL') return [new Problem(507, error.message)]
    return [new Problem(400, messageOf(error))]
  }
  const known = ofPolicies(error)
  if (known) return [known]
  warn(error instanceof Error ? (error.stack ?? error.message) : 'a route threw no error')
  return [new Problem(500, 'the console failed; the log of the process says why')]
}

/** A mistake in an override, or a conflict: errors of `@sluice/policies`, which this package does not load. */
function ofPolicies(error: unknown): Problem | undefined {
  if (!(error instanceof Error)) return undefined
  if (isPropertyOf(error, 'problems') && Array.isArray((error as { problems?: unknown }).problems))
    return new Problem(400, messageOf(error))
  if (!isPropertyOf(error, 'found')) return undefined
  return new Problem(409, error.message, { found: (error as { found?: unknown }).found })
}

/** Since when the store is away, and what happens meanwhile. */
function outage(store: Store): Problem {
  const stats = isPropertyOf(store, 'stats') ? store.stats?.() : undefined
  const since = stats?.state === 'unavailable' ? ` since ${new Date(stats.since).toISOString()}` : ''
  const meanwhile = 'each process decides by its option unavailable; blocks and bans that it knows hold'
  return new Problem(503, `the store is away${since}: nothing can be read or changed. Meanwhile, ${meanwhile}`)
}
