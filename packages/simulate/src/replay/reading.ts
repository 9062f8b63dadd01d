import { addressIn, clientIn, durationMs, TrustedProxies } from '@sluice/core/internal'
import type { Resolvers } from '@sluice/policies'
import { HASHED } from '../formats/recording.js'
import { isPlausibleDuration } from '../formats/times.js'
import type { LogRecord } from '../record.js'
import { SimulationError } from '../simulation-error.js'
import { HashedAddresses } from './hashed-addresses.js'
import type { Reading } from './record-context.js'

/** How a log's records become requests, as options say. */
export interface ReadingOptions {
  /** The field that holds the client's address. @default that of the format */
  readonly client?: string | undefined
  /** Networks of proxies whose `X-Forwarded-For` names the client, or `loopback`. @default none */
  readonly trustProxy?: readonly string[] | undefined
  /** Values that every request has where its record lacks them, by name: `host`, `route`, `status`, `bytes`, `duration`, `header:NAME`. */
  readonly assume?: Readonly<Record<string, string>> | undefined
  /** Fields by the name of what a policy needs: `user`, `route`, `content-bytes`, `header:NAME`, `cookie:NAME`, or any key. */
  readonly fields?: Readonly<Record<string, string>> | undefined
}

const ASSUMABLE = 'host, route, user, status, bytes, duration or header:NAME'

/** @throws SimulationError */
export function readingOf(
  { client, trustProxy, assume = {}, fields = {} }: ReadingOptions,
  hasUser: boolean,
  isRecorded = false,
): Reading {
  const headers = new Map<string, string>()
  const assumed: { -readonly [Name in keyof Reading['assumed']]: Reading['assumed'][Name] } = { headers }
  for (const [name, value] of Object.entries(assume)) {
    const [, header] = /^header:(.+)$/.exec(name) ?? []
    if (header !== undefined) headers.set(header.toLowerCase(), value)
    else if (name === 'host' || name === 'route' || name === 'user') assumed[name] = value
    else if (name === 'status' || name === 'bytes') assumed[name] = numberOf(name, value)
    else if (name === 'duration') assumed.durationMs = msOf(value)
    else throw new SimulationError(`--assume: expected ${ASSUMABLE}, got ${JSON.stringify(name)}`)
  }
  const hashed = new HashedAddresses()
  const addressOf = addresses(client, trustProxy, hashed)
  const known = { ...(isRecorded && { route: '.route' }), ...fields }
  return { assumed, addressOf, hashed, fields: new Map(Object.entries(known)), hasUser, readsHeaders: true }
}

function numberOf(name: string, value: string): number {
  if (/^\d{1,12}$/.test(value)) return Number(value)
  throw new SimulationError(`--assume: ${name}: expected a whole number, got ${JSON.stringify(value)}`)
}

function msOf(value: string): number {
  let ms: number
  try {
    ms = durationMs('--assume', 'duration', value as `${number}s`)
  } catch (error) {
    throw new SimulationError((error as Error).message)
  }
  if (isPlausibleDuration(ms)) return ms
  throw new SimulationError(`--assume: duration: expected at most 366 days, got ${JSON.stringify(value)}`)
}

function addresses(
  client: string | undefined,
  trustProxy: readonly string[] | undefined,
  hashed: HashedAddresses,
): Reading['addressOf'] {
  const connection =
    client === undefined
      ? ({ ip }: LogRecord) => (ip?.startsWith(HASHED) ? hashed.addressOf(ip) : ip)
      : (record: LogRecord) => fieldAddress(record, client)
  if (!trustProxy) return connection
  let trusted: TrustedProxies
  try {
    trusted = new TrustedProxies(trustProxy)
  } catch (error) {
    throw new SimulationError(`--trust-proxy: ${(error as Error).message}`)
  }
  return (record) => {
    const peer = connection(record)
    const chain = record.header('x-forwarded-for')
    // Some logs have that header in place of the connection's address.
    const isTrusted = peer === undefined || trusted.has(peer)
    return chain !== undefined && isTrusted ? (clientIn(chain, trusted) ?? peer) : peer
  }
}

function fieldAddress(record: LogRecord, field: string): string | undefined {
  const text = record.field(field)
  return text === undefined ? undefined : (addressIn(text) ?? text)
}

/** The functions that a document names: those of code, then those that fields stand for, then the user that formats know. */
export function resolversOf(given: Resolvers, { fields, assumed }: Reading): Resolvers {
  const keys: Record<string, NonNullable<Resolvers['keys']>[string]> = {
    user: ({ user }: LogRecord) => user ?? assumed.user,
  }
  for (const [name, field] of fields) {
    if (!/^(route|host|content-bytes|header:.+|cookie:.+)$/.test(name))
      keys[name] = (record: LogRecord) => record.field(field)
  }
  return { ...given, keys: { ...keys, ...given.keys } }
}
