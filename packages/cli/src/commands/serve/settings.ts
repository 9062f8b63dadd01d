import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { quoted, TrustedProxies } from '@sluice/core/internal'
import { givenUrl, POSTGRES_OPTIONS, schemaOf } from '../../postgres/client.js'
import type { OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { durationOption, shareOption, wholeNumberOption } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'
import { givenTarget } from '../../redis/given-target.js'
import type { Target } from '../../redis/target.js'
import { MAX_CONNECTIONS } from '../../serve/bounds.js'
import type { Named } from '../../serve/cannot.js'
import type { Dialect } from '../../serve/dialects/dialect.js'
import { DIALECTS, type DialectName } from '../../serve/dialects/index.js'
import type { ServerSettings } from '../../serve/server.js'
import { Token } from '../../serve/token.js'

/** The checked options of `sluice serve`. */
export interface ServeSettings {
  readonly dialectName: DialectName
  readonly dialect: Dialect
  readonly document: DocumentPlace
  /** Undefined if this process counts for itself. */
  readonly redis: { readonly target: Target; readonly prefix: string; readonly isCluster: boolean } | undefined
  readonly host: string
  readonly port: number
  /** The address of the metrics. Undefined if nothing is counted for them. */
  readonly metrics: Address | undefined
  /** Whether refusals are counted by identity. */
  readonly offenders: boolean
  readonly tls: ServerSettings['tls']
  readonly token: Token | undefined
  /** The names, in lower case, under which callers without a token reach this decider. */
  readonly allowedHosts: ReadonlySet<string>
  readonly trusted: TrustedProxies | undefined
  readonly named: Named
  /** For how long charges are kept, in ms. Undefined if callers cannot change them. */
  readonly keepMs: number | undefined
  readonly unavailable: 'local' | 'allow' | 'deny'
  readonly workers: number
  /** For how long it responds with 503 to /readyz, and goes on deciding, before it drains. */
  readonly graceMs: number
  readonly drainMs: number
  readonly maxConnections: number
  /** Undefined if nothing is recorded. */
  readonly record: RecordSettings | undefined
}

export interface RecordSettings {
  readonly file: string
  readonly secret: string
  readonly share: number
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** A file, or the name of a document in Redis or PostgreSQL. */
export type DocumentPlace =
  | { readonly file: string }
  | { readonly inRedis: string }
  | { readonly inPostgres: string; readonly url: string; readonly schema: string }

const SHORTEST_TOKEN = 16
const SHORTEST_SECRET = 16
const MODES = ['local', 'allow', 'deny'] as const
/** A document that `sluice apply` saves. */
const SAVED = /^(redis|postgres):([A-Za-z0-9_-]{1,64})?$/

/** @throws UsageError */
export function serveSettings(values: OptionValues, environment: Environment): ServeSettings {
  const dialectName = oneOf(values, 'dialect', Object.keys(DIALECTS) as DialectName[])
  const dialect = DIALECTS[dialectName]
  const isRedis = environment.env.REDIS_URL !== undefined || values['redis-file'] !== undefined
  const redis = isRedis
    ? {
        target: givenTarget(values, environment),
        prefix: String(values.prefix ?? 'sluice:'),
        isCluster: values.cluster === true,
      }
    : undefined
  const workers = wholeNumberOption(values, 'workers', { min: 1, max: 256, otherwise: 1 })
  if (workers > 1 && !redis) {
    throw new UsageError(
      '--workers: expected 1 without Redis: each process counts in its own memory, so that limits multiply',
    )
  }
  const token = tokenOf(values, environment)
  const tls = tlsOf(values)
  const isGuarded = token !== undefined || tls?.ca !== undefined
  return {
    dialectName,
    dialect,
    document: documentOf(values, environment, redis !== undefined),
    redis,
    ...addressOf('listen', values.listen ?? '127.0.0.1:9190', isGuarded, 'spend the budgets of others'),
    metrics:
      values.metrics === undefined
        ? undefined
        : addressOf('metrics', values.metrics, isGuarded, 'read the names of policies, and who is refused'),
    offenders: offendersOf(values, redis !== undefined),
    tls,
    token,
    allowedHosts: allowedHostsOf(values),
    trusted: trustedOf(values, dialect),
    named: { ...namedOf(values, dialect), keepsCharges: values.charges !== undefined },
    keepMs: keepMsOf(values, dialect),
    unavailable: values.unavailable === undefined ? 'local' : oneOf(values, 'unavailable', MODES),
    workers,
    graceMs: durationOption(values, 'grace', { minMs: 0, maxMs: 600_000, otherwiseMs: 5000 }),
    drainMs: durationOption(values, 'drain', { minMs: 0, maxMs: 600_000, otherwiseMs: 10_000 }),
    maxConnections: wholeNumberOption(values, 'max-connections', {
      min: 1,
      max: 1_000_000,
      otherwise: MAX_CONNECTIONS,
    }),
    record: recordOf(values, environment),
  }
}

function recordOf(values: OptionValues, { env }: Environment): RecordSettings | undefined {
  const { record, 'record-secret-file': file } = values
  const share = shareOption(values, 'record-share')
  if (record === undefined) {
    const other = ['record-secret-file', 'record-share'].find((name) => values[name] !== undefined)
    if (other !== undefined) throw new UsageError(`--${other}: expected --record FILE beside it`)
    return undefined
  }
  if (share === 0) throw new UsageError('--record-share: expected a share above 0%')
  const [source, secret] =
    typeof file === 'string'
      ? ['--record-secret-file', read('record-secret-file', file).trim()]
      : ['--record: SLUICE_RECORD_SECRET, or --record-secret-file', env.SLUICE_RECORD_SECRET ?? '']
  // Never shown.
  if (secret.length < SHORTEST_SECRET) {
    throw new UsageError(`${source}: expected ${SHORTEST_SECRET} or more characters: openssl rand -hex 32`)
  }
  return { file: String(record), secret, share: share ?? 1 }
}

/** The document that `--document` names. @throws UsageError */
export function documentOf(values: OptionValues, environment: Environment, hasRedis: boolean): DocumentPlace {
  const { document } = values
  if (typeof document !== 'string') {
    throw new UsageError('--document: expected a file, redis:NAME or postgres:NAME')
  }
  const [, place, name = 'default'] = SAVED.exec(document) ?? []
  if (place === 'postgres') return { inPostgres: name, url: givenUrl(values, environment), schema: schemaOf(values) }
  const other = Object.keys(POSTGRES_OPTIONS).find((option) => values[option] !== undefined)
  if (other !== undefined) throw new UsageError(`--${other}: expected none without --document postgres:NAME`)
  if (place === undefined) return { file: document }
  if (!hasRedis) throw new UsageError('--document redis: expected REDIS_URL, or --redis-file')
  return { inRedis: name }
}

/** The address of an option. Beyond this machine only for callers that authenticate. */
function addressOf(option: string, given: unknown, isGuarded: boolean, risk: string): Address {
  const text = String(given)
  const [, name = '', digits = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  const host = name === '' || name === 'localhost' ? '127.0.0.1' : name.replace(/^\[(.*)\]$/, '$1')
  const port = Number(digits)
  if (digits === '' || port > 65_535 || isIP(host) === 0) {
    throw new UsageError(`--${option}: expected an address and a port such as 127.0.0.1:9190, got ${quoted(text)}`)
  }
  const isLoopback = host === '::1' || host.startsWith('127.')
  if (!isLoopback && !isGuarded) {
    throw new UsageError(
      `--${option}: expected a loopback address, as anyone who reaches it could ${risk}; for another one set ` +
        'SLUICE_TOKEN or --token-file, or --tls-client-ca',
    )
  }
  return { host, port }
}

/** In memory only the listener of the metrics can show them. */
function offendersOf({ offenders, metrics }: OptionValues, hasRedis: boolean): boolean {
  if (offenders !== true || hasRedis || metrics !== undefined) return offenders === true
  throw new UsageError(
    '--offenders: expected Redis, for sluice offenders, or --metrics, which shows them at /offenders',
  )
}

function tokenOf({ 'token-file': file }: OptionValues, { env }: Environment): Token | undefined {
  const [source, text] =
    typeof file === 'string' ? ['--token-file', read('token-file', file).trim()] : ['SLUICE_TOKEN', env.SLUICE_TOKEN]
  if (text === undefined) return undefined
  // Never shown.
  if (!/^[!-~]+$/.test(text) || text.length < SHORTEST_TOKEN) {
    throw new UsageError(
      `${source}: expected ${SHORTEST_TOKEN} or more printable characters without spaces: openssl rand -hex 32`,
    )
  }
  return new Token(text)
}

function tlsOf(values: OptionValues): ServerSettings['tls'] {
  const { 'tls-cert': cert, 'tls-key': key, 'tls-client-ca': ca } = values
  if (cert === undefined && key === undefined && ca === undefined) return undefined
  if (typeof cert !== 'string' || typeof key !== 'string')
    throw new UsageError('--tls-cert: expected it and --tls-key together')
  return {
    cert: read('tls-cert', cert),
    key: read('tls-key', key),
    ...(typeof ca === 'string' && { ca: read('tls-client-ca', ca) }),
  }
}

function trustedOf({ 'trust-proxy': networks }: OptionValues, { readsHeaders }: Dialect): TrustedProxies | undefined {
  if (!readsHeaders) {
    if (networks !== undefined)
      throw new UsageError('--trust-proxy: expected none with this dialect, which reads no headers of proxies')
    return undefined
  }
  if (typeof networks !== 'string') {
    throw new UsageError(
      '--trust-proxy: expected the addresses of your gateways, such as loopback or 10.0.0.5: only they are believed',
    )
  }
  try {
    return new TrustedProxies(networks.split(/[\n,]/).map((each) => each.trim()))
  } catch (error) {
    throw new UsageError(`--trust-proxy: ${(error as Error).message}`)
  }
}

function allowedHostsOf({ 'allowed-host': given }: OptionValues): ReadonlySet<string> {
  const names = typeof given === 'string' ? given.toLowerCase().split(/[\n,]/) : []
  const wrong = names.find((name) => !/^[a-z0-9._-]+$/.test(name))
  if (wrong === undefined) return new Set(names)
  throw new UsageError(`--allowed-host: expected a name such as decider.internal, without a port, got ${quoted(wrong)}`)
}

function namedOf(values: OptionValues, { namesKeys }: Dialect): Named {
  const namesIn = (option: 'key' | 'tier'): readonly string[] => {
    const given = values[option]
    if (given === undefined) return []
    if (!namesKeys) throw new UsageError(`--${option}: expected none with this dialect: its callers name no ${option}s`)
    const names = String(given).split(/[\n,]/)
    const wrong = names.find((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name) || RESERVED.includes(name))
    if (wrong === undefined) return names
    throw new UsageError(
      `--${option}: expected 1 to 64 letters, digits, "_" or "-", and no kind that there is, got ${quoted(wrong)}`,
    )
  }
  return { keys: namesIn('key'), tiers: namesIn('tier') }
}

function keepMsOf(values: OptionValues, { namesKeys }: Dialect): number | undefined {
  if (values.charges === undefined) return undefined
  if (!namesKeys) throw new UsageError('--charges: expected none with this dialect: its callers get no ids')
  return durationOption(values, 'charges', { minMs: 1000, maxMs: 366 * 86_400_000, otherwiseMs: 0 })
}

/** Kinds that need no caller, or that no caller may name. */
const RESERVED = [
  'ip',
  'everyone',
  'anonymous',
  'key',
  'path',
  'route',
  'method',
  'credentials',
  'header',
  'cookie',
  '__proto__',
]

function oneOf<Name extends string>(values: OptionValues, option: string, names: readonly Name[]): Name {
  const given = values[option]
  const found = names.find((name) => name === given)
  if (found !== undefined) return found
  throw new UsageError(
    `--${option}: expected ${names.join(', ')}, got ${given === undefined ? 'none' : quoted(String(given))}`,
  )
}

function read(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--${option}: cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}
