import { randomInt } from 'node:crypto'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { json } from 'node:stream/consumers'
import { counted } from '@sluice/core/internal'
import { UsageError } from '../../program/usage-error.js'
import { type CheckResult, error, ok, warning, worstOf } from './finding.js'
import { type DoctorReport, PROXIES } from './report.js'

/** The response of the route `/ip` of an application. */
interface Seen {
  /** The address that the framework takes for the client. */
  readonly ip: string
  /** `X-Forwarded-For` as the application received it. */
  readonly chain: readonly string[]
}

/** Whether `--url` names a route of an application, instead of a Redis. */
export const isRoute = (url: string): boolean => /^https?:/i.test(url)

/** Checks which proxies are in front of an application, and whether it trusts exactly these. */
export async function examineProxies(url: string, timeoutMs: number): Promise<DoctorReport> {
  const startedMs = Date.now()
  const target = addressOf(url)
  const findings = await lookAt(target, AbortSignal.timeout(timeoutMs)).catch((failure) => [
    { check: 'route', ...unreadable(failure) },
  ])
  return {
    status: worstOf(findings),
    target: `${target.origin}${target.pathname}`,
    kind: PROXIES,
    nodes: [],
    lookedAt: new Date(startedMs).toISOString(),
    tookMs: Date.now() - startedMs,
    findings,
  }
}

/** @throws UsageError which never repeats the URL: it may hold a password */
function addressOf(url: string): URL {
  const isUrl = URL.canParse(url)
  const address = new URL(isUrl ? url : 'http://localhost')
  if (!isUrl || address.username !== '' || address.password !== '')
    throw new UsageError('--url: expected a Redis, or a route without credentials such as https://example.com/ip')
  return address
}

async function lookAt(url: URL, signal: AbortSignal): Promise<({ readonly check: string } & CheckResult)[]> {
  const [marker, second] = markers()
  const once = await see(url, [marker], signal)
  const after = once.chain.slice(once.chain.lastIndexOf(marker) + 1)
  const isKept = once.chain.includes(marker)
  const twice = await see(url, [marker, second], signal)
  const tail = twice.chain.slice(twice.chain.lastIndexOf(second) + 1)
  // A proxy that adds to one of two fields of this name leaves the other where the client wrote it.
  const isSplit = twice.chain.includes(second) && tail.length < after.length
  return [
    { check: 'chain', ...ofChain(after, isKept, marker) },
    { check: 'address', ...ofAddress(once.ip, after, marker) },
    ...(isSplit ? [{ check: 'fields', ...ofSplit(tail.length, after.length) }] : []),
  ]
}

/** Two addresses for documentation (RFC 5737), that no client and no proxy has. */
function markers(): readonly [string, string] {
  const last = randomInt(1, 254)
  return [`192.0.2.${last}`, `192.0.2.${last + 1}`]
}

function ofChain(after: readonly string[], isKept: boolean, marker: string): CheckResult {
  const data = { proxies: after.length, isKept }
  if (after.length === 0) {
    return isKept
      ? ok('No proxy adds to X-Forwarded-For: the application receives what the client sent.', data)
      : warning(
          'A proxy removes X-Forwarded-For, and adds nothing: the application cannot see the client.',
          'Have the proxy send X-Forwarded-For with the address of its client.',
          data,
        )
  }
  const shown = `${isKept ? `${marker} (sent by the doctor), ` : ''}${after.join(', ')}`
  const first = isKept ? '' : ' The first replaces what the client sent.'
  return ok(`${counted(after.length, 'proxy', 'proxies')}: X-Forwarded-For arrives as ${shown}.${first}`, data)
}

function ofAddress(ip: string, after: readonly string[], marker: string): CheckResult {
  const number = after.length
  const expected = after[0]
  const data = { ip, expected }
  if (ip === marker) {
    return error(
      'The application takes the address that the client wrote: any client can choose its address.',
      number === 0 ? 'Trust no proxy, or have yours add the address of its client.' : settingFor(number),
      data,
    )
  }
  if (expected === undefined) return ok(`The application takes the address of the connection: ${ip}.`, data)
  if (ip === expected) return ok(`The application takes the address that the first proxy saw: ${ip}.`, data)
  return error(
    `The application takes the address of a proxy for that of the client: ${ip}, not ${expected}. All clients share one limit.`,
    settingFor(number),
    data,
  )
}

function ofSplit(left: number, number: number): CheckResult {
  return error(
    `Of two fields X-Forwarded-For, a proxy adds to the first alone: ${left} of ${number} addresses follow the second, which the client wrote.`,
    'Have the proxy replace the field, or put one in front that does, such as nginx with $remote_addr.',
    { left, number },
  )
}

const settingFor = (number: number) =>
  `Trust ${counted(number, 'proxy', 'proxies')}: app.set('trust proxy', ${number}) in Express and NestJS, new Koa({ proxy: true, maxIpsCount: ${number} }), fastify({ trustProxy: (address, hop) => hop < ${number} }).`

/** Reads the route. Each marker is a field of its own. */
async function see(url: URL, given: readonly string[], signal: AbortSignal): Promise<Seen> {
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const headers = { accept: 'application/json', 'cache-control': 'no-cache', 'x-forwarded-for': [...given] }
  const { status, body } = await new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
    send(url, { headers, signal }, (response) => {
      json(response).then(
        (body) => resolve({ status: response.statusCode, body }),
        () => resolve({ status: response.statusCode, body: undefined }),
      )
    })
      .once('error', reject)
      .end()
  })
  const { ip, chain } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (typeof ip !== 'string' || typeof chain !== 'string') throw new NoRoute(status)
  return { ip: bare(ip), chain: chain.split(',').map(bare).filter(Boolean) }
}

class NoRoute extends Error {
  constructor(status: number | undefined) {
    super(`expected JSON with ip and chain, got a response with status ${status}`)
  }
}

function unreadable(failure: Error): CheckResult {
  const advice =
    failure instanceof NoRoute
      ? 'Add the route of https://…/ip to the application, and name its address: a redirect is not followed.'
      : 'Check the address, and whether this machine reaches it.'
  return error(`The route cannot be read: ${failure.message}.`, advice)
}

/** An address without its port, and an IPv4 address without its form of IPv6. */
function bare(address: string): string {
  const text = address.trim()
  const [, inBrackets] = /^\[(.*)\](?::\d+)?$/.exec(text) ?? []
  if (inBrackets !== undefined) return inBrackets
  return text.replace(/^::ffff:(?=\d+\.)/i, '').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
}
