import type { ConnectionOptions } from 'node:tls'
import { UsageError } from '../program/usage-error.js'

/** Where a Redis is, and how to log in to it. */
export interface Target {
  readonly host: string
  readonly port: number
  /** A Unix socket, instead of host and port. */
  readonly path?: string
  readonly username?: string
  readonly password?: string
  readonly db: number
  /** Undefined without TLS. */
  readonly tls?: ConnectionOptions
}

const PORT = 6379

/**
 * The server that a URL names: `redis://user:password@host:port/db`, `rediss://` for TLS, `unix:///path?db=1`.
 *
 * @throws UsageError which never repeats the URL: it may hold a password
 */
export function targetOf(source: string, text: string, tls: ConnectionOptions): Target {
  const url = urlOf(source, text)
  const username = decoded(source, url.username)
  const password = decoded(source, url.password)
  if (username !== '' && password === '') throw new UsageError(`${source} names a user and no password`)
  const credentials = { ...(username !== '' && { username }), ...(password !== '' && { password }) }
  if (url.protocol === 'unix:') {
    return {
      host: '',
      port: 0,
      path: decoded(source, url.pathname),
      db: databaseOf(source, url.searchParams.get('db') ?? ''),
      ...credentials,
    }
  }
  // IPv6 addresses are in brackets in a URL, and nowhere else.
  const host = url.hostname.replace(/^\[|\]$/g, '') || 'localhost'
  return {
    host,
    port: url.port === '' ? PORT : Number(url.port),
    db: databaseOf(source, url.pathname.slice(1)),
    ...credentials,
    ...(url.protocol === 'rediss:' && { tls }),
  }
}

/** The server for people, without credentials: `localhost:6379 (database 1, TLS)`. */
export function addressOf({ host, port, path, db, tls }: Target): string {
  const details = [...(db === 0 ? [] : [`database ${db}`]), ...(tls ? ['TLS'] : [])]
  return `${path ?? nodeName(host, port)}${details.length > 0 ? ` (${details.join(', ')})` : ''}`
}

export function nodeName(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function urlOf(source: string, text: string): URL {
  try {
    const url = new URL(text.trim())
    if (['redis:', 'rediss:', 'unix:'].includes(url.protocol)) return url
  } catch {
    // Reported below: the error of `new URL` repeats the text.
  }
  throw new UsageError(
    `${source}: expected a URL such as redis://user:password@host:6379/0 (rediss:// for TLS, unix:///path for a socket); ` +
      'special characters of a password are percent-encoded',
  )
}

function decoded(source: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UsageError(`${source}: a "%" that is no percent-encoding; write it as %25`)
  }
}

function databaseOf(source: string, text: string): number {
  if (text === '') return 0
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new UsageError(`${source}: expected the number of a database after the host, such as /0`)
}
