import { type Duration, SluiceError } from '@sluice/core'
import { durationMs, knownOptions, refusePolluted } from '@sluice/core/internal'
import type { Resolvers } from './compile/resolvers.js'
import type { ReadDocument } from './document/read-document.js'
import { Policies } from './policies.js'
import type { Problem } from './problems/problem.js'
import { FIELDS_OF_DOCUMENTS } from './schema/check.js'
import { FileSource } from './sources/file.js'
import { PostgresSource } from './sources/postgres/postgres.js'
import { RedisSource } from './sources/redis.js'
import { contentsOf, type PoliciesSource } from './sources/source.js'

export interface PoliciesOptions extends Resolvers {
  /** The path of a file, YAML or JSON. */
  readonly file?: string
  /** A client of ioredis or of redis: the document that `sluice apply` saves there. */
  readonly redis?: unknown
  /**
   * A `Pool` of `pg`, or options with one.
   *
   * It holds the document that `sluice apply --to postgres` saves, and overrides in a table.
   */
  readonly postgres?: unknown
  /**
   * Beside `redis` or `postgres`: another client, or a `Pool` of `pg`, on which `policies.overrides` writes.
   *
   * Its user needs the grants for that, and no other one does.
   * @default none: overrides cannot be written
   */
  readonly save?: unknown
  /** Beside `redis` or `postgres`: the name of the document. @default 'default' */
  readonly name?: string
  /** Beside `redis`: the prefix of keys, as that of `redisStore`. @default 'sluice:' */
  readonly prefix?: string
  /** Loads a document from any other place: its text, or an object. `reload()` calls it again. */
  readonly load?: () => unknown
  /** A document as an object, copied. */
  readonly object?: unknown
  /**
   * The document that is in force where that of the source is wrong or cannot be read at first: its text, or an object.
   *
   * A warning says why. Once the source has a valid document, that is in force.
   * @default none: `from` rejects
   */
  readonly fallback?: unknown
  /** How long `from` waits for the document: up to 10 minutes, in ms or as a duration. @default '30s' */
  readonly loadTimeout?: Duration
  /** Whether a later version may have fewer than half of the policies, limits and overrides. @default false */
  readonly allowShrink?: boolean
  /**
   * Finds further problems of a document, such as fields that its place of use does not support.
   *
   * They are reported like any other mistake, with line and column, and the document does not come into force. May be
   * async. Gets the document as plain data, to be left as it is.
   * @default nothing
   */
  readonly check?: (document: ReadDocument) => readonly Problem[] | Promise<readonly Problem[]>
  /**
   * Beside `postgres`: finds further problems of an override's limits in the table, at paths from `limits` on.
   *
   * Such an override has no effect, and causes a warning (`SLUICE_OVERRIDE_FAILED`).
   * @default nothing
   */
  readonly checkOverride?: (limits: readonly object[]) => readonly Problem[]
}

/**
 * Policies that are data.
 *
 * @example rateLimit({ policies: await policies.from({ file: 'policies.yaml' }), store })
 */
export const policies = Object.freeze({ from })

/**
 * Loads a document, and resolves once its policies are in force: before requests are served. Where the document is wrong, cannot be
 * read, or does not come in time, it rejects, unless there is a `fallback`.
 *
 * @throws PoliciesError with all its problems; SluiceError `INVALID_POLICY` for wrong options
 */
async function from(options: PoliciesOptions): Promise<Policies> {
  refusePolluted(WHERE, [...OPTIONS, ...FIELDS_OF_DOCUMENTS])
  const {
    keys,
    tiers,
    costs,
    allowShrink = false,
    fallback,
    loadTimeout = 30_000,
    check,
    checkOverride,
  } = options ?? {}
  knownOptions(WHERE, options ?? {}, OPTIONS)
  for (const [option, registered] of Object.entries({ keys, tiers, costs })) {
    const all = registered === undefined ? [] : Object.values(registered)
    if (!all.every((each) => typeof each === 'function')) wrong(option, 'functions by their names')
  }
  if (typeof allowShrink !== 'boolean') wrong('allowShrink', 'true or false')
  const loadTimeoutMs = durationMs(WHERE, 'loadTimeout', loadTimeout)
  if (loadTimeoutMs > LONGEST_LOAD_MS) wrong('loadTimeout', 'at most 10 minutes')
  for (const [option, given] of Object.entries({ check, checkOverride })) {
    if (given !== undefined && typeof given !== 'function') wrong(option, 'a function')
  }
  const resolvers = { ...(keys && { keys }), ...(tiers && { tiers }), ...(costs && { costs }) }
  return Policies.load(sourceOf(options), { resolvers, allowShrink, fallback, loadTimeoutMs, check, checkOverride })
}

const WHERE = 'policies.from'
const LONGEST_LOAD_MS = 600_000
const SOURCES = ['file', 'object', 'redis', 'postgres', 'load'] as const
const OPTIONS: readonly string[] = [
  ...SOURCES,
  'save',
  'name',
  'prefix',
  'fallback',
  'loadTimeout',
  'allowShrink',
  'check',
  'checkOverride',
  'keys',
  'tiers',
  'costs',
]

function sourceOf(options: PoliciesOptions): PoliciesSource {
  const sources = SOURCES.filter((source) => options?.[source] !== undefined)
  if (sources.length !== 1)
    wrong('file', `one of ${SOURCES.join(', ')}, got ${sources.length === 0 ? 'none' : sources.join(', ')}`)
  const { file, object, redis, postgres, save, load, name = 'default', prefix = 'sluice:' } = options
  if (sources[0] !== 'redis' && options.prefix !== undefined) wrong('prefix', 'none without redis')
  if (sources[0] !== 'redis' && sources[0] !== 'postgres' && options.name !== undefined) {
    wrong('name', 'none without redis or postgres')
  }
  if (save !== undefined && redis === undefined && postgres === undefined)
    wrong('save', 'none without redis or postgres')
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name))
    wrong('name', '1 to 64 letters, digits, "_" or "-"')
  if (typeof prefix !== 'string') wrong('prefix', 'a string')
  if (file !== undefined)
    return typeof file === 'string' && file !== '' ? new FileSource(file) : wrong('file', 'the path of a file')
  if (redis !== undefined) return new RedisSource(redis, name, prefix, save)
  if (postgres !== undefined) return new PostgresSource(postgres, name, save)
  if (load === undefined) return { name: 'object', load: async () => ({ name: 'object', version: '1', object }) }
  return typeof load === 'function' ? functionSource(load) : wrong('load', 'a function')
}

/** Every document that it returns is a new version. */
function functionSource(load: () => unknown): PoliciesSource {
  let version = 0
  const name = 'load'
  return {
    name,
    async load() {
      const document = await load()
      version++
      return { name, version: String(version), ...contentsOf(document) }
    },
  }
}

function wrong(option: string, expected: string): never {
  throw new SluiceError('INVALID_POLICY', `policies.from: ${option}: expected ${expected}`)
}
