import { setImmediate } from 'node:timers/promises'
import { SluiceError } from '@sluice/core'
import type { OverrideTable, StoredOverride } from '../compile/override-table.js'
import type { Call } from './redis-documents.js'
import {
  hashOfPlace,
  type NewOverride,
  OverrideConflict,
  type OverridePage,
  type OverridePlace,
  type SavedOverride,
  type SavedOverrides,
} from './saved-overrides.js'

/** Most overrides beside one document, and those that are read at once. */
const MAX_OVERRIDES = 10_000
const PAGE = 500
/** Kinds of one policy: each is one more look-up for each request. */
const MAX_KINDS = 32
/** The keys outlive the last override for a while. */
const GRACE_MS = 86_400_000

/**
 * Writes or removes one where the version is the expected one, and removes some that have ended.
 *
 * KEYS the overrides by client, their ends by client, and the version of the last write; ARGV client, expected version, when it ends or
 * '' to remove it, its contents, most overrides, ms for which keys outlive the last one
 *
 * Returns its version; `conflict` or `full` where nothing was written.
 */
const WRITE = `
local call = redis.call
local rows, ends, mark, client = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, ended in ipairs(call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do
  call('HDEL', rows, ended)
  call('ZREM', ends, ended)
end
local known = call('HMGET', rows, client)[1]
local version = '0'
if known and tonumber(call('ZSCORE', ends, client) or 0) > now then version = string.match(known, '^{"version":(%d+)') or '0' end
if version ~= ARGV[2] then return 'conflict' end
local written = string.format('%.0f', math.max(now, (tonumber(call('GET', mark)) or 0) + 1))
if ARGV[3] == '' then
  call('HDEL', rows, client)
  call('ZREM', ends, client)
else
  if not known and call('HLEN', rows) >= tonumber(ARGV[5]) then return 'full' end
  call('HSET', rows, client, '{"version":' .. written .. ',"at":' .. string.format('%.0f', now) .. ',' .. ARGV[4])
  call('ZADD', ends, ARGV[3], client)
end
call('SET', mark, written)
local last = tonumber(call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2]) or now
local life = string.format('%.0f', last - now + ARGV[6])
for _, key in ipairs(KEYS) do call('PEXPIRE', key, life) end
return written
`

/** The overrides beside a document in Redis. */
export class RedisSavedOverrides implements SavedOverrides {
  readonly #call: Call
  readonly #keys: readonly [rows: string, ends: string, mark: string]

  /** @param prefix that of the store, `sluice:` by default */
  constructor(call: Call, name: string, prefix: string) {
    this.#call = call
    // One hash tag, so that all are on the node of the document.
    const start = `${prefix}policies:{${name}}:overrides`
    this.#keys = [start, `${start}:ends`, `${start}:mark`]
  }

  /** A different text after each write. Empty where there was none so far. */
  async mark(): Promise<string> {
    return String((await this.#call('GET', this.#keys[2])) ?? '')
  }

  async get(place: OverridePlace): Promise<SavedOverride | undefined> {
    const [text] = (await this.#call('HMGET', this.#keys[0], fieldOf(place))) as readonly unknown[]
    const found = overrideIn(text)
    return found && isInForce(found) ? found : undefined
  }

  /** All that are there, with the client of each as it is looked up. */
  async all(): Promise<Map<string, SavedOverride>> {
    const found = new Map<string, SavedOverride>()
    let cursor = '0'
    do {
      const reply = (await this.#call('HSCAN', this.#keys[0], cursor, 'COUNT', String(PAGE))) as [unknown, unknown[]]
      cursor = String(reply[0])
      for (let i = 0; i + 1 < reply[1].length; i += 2) {
        if (i % PAGE === 0) await setImmediate()
        const override = overrideIn(reply[1][i + 1])
        if (override) found.set(String(reply[1][i]), override)
      }
    } while (cursor !== '0' && found.size < 2 * MAX_OVERRIDES)
    return found
  }

  async page(policy: string | undefined, cursor: string | undefined, max: number): Promise<OverridePage> {
    const after = cursor === undefined ? undefined : BigInt(cursor)
    const rows: { readonly at: bigint; readonly override: SavedOverride }[] = []
    for (const [field, override] of await this.all()) {
      if (!isInForce(override) || (policy !== undefined && override.policy !== policy)) continue
      const at = hashOfPlace(placeIn(field))
      if (after === undefined || at > after) rows.push({ at, override })
    }
    rows.sort((a, b) => (a.at < b.at ? -1 : 1))
    const entries = rows.slice(0, max).map(({ override }) => override)
    return rows.length > max ? { entries, cursor: String(rows[max - 1]?.at) } : { entries }
  }

  set(place: OverridePlace, { until, ...rest }: NewOverride, expected: number): Promise<number> {
    const { policy, kind, value } = place
    const contents = JSON.stringify({ policy, kind, value, until, ...rest }).slice(1)
    return this.#write(place, expected, String(until), contents)
  }

  async remove(place: OverridePlace, expected: number): Promise<void> {
    await this.#write(place, expected, '', '')
  }

  async #write(place: OverridePlace, expected: number, until: string, contents: string): Promise<number> {
    const args = [fieldOf(place), String(expected), until, contents, String(MAX_OVERRIDES), String(GRACE_MS)]
    const reply = String(await this.#call('EVAL', WRITE, '3', ...this.#keys, ...args))
    if (reply === 'conflict') throw new OverrideConflict(expected, await this.get(place))
    if (reply === 'full') {
      throw new SluiceError('STORE_FULL', `overrides: expected at most ${MAX_OVERRIDES} beside a document in Redis`)
    }
    return Number(reply)
  }
}

/** The overrides in Redis as a process knows them: all of them, read again after each write. */
export class RedisOverrides implements OverrideTable {
  readonly name = 'overrides'
  readonly #saved: RedisSavedOverrides
  #byClient: ReadonlyMap<string, StoredOverride> = new Map()
  #kinds: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  #mark = ''
  #onChange = () => {}
  /** One look after the other: an earlier reply never replaces a later one. */
  #last: Promise<void> = Promise.resolve()

  constructor(saved: RedisSavedOverrides) {
    this.#saved = saved
  }

  onChange(listener: () => void): void {
    this.#onChange = listener
  }

  kindsOf(policy: string): ReadonlySet<string> {
    return this.#kinds.get(policy) ?? NO_KINDS
  }

  find(policy: string, kind: string, identity: string): StoredOverride | undefined {
    return this.#byClient.get(fieldOf({ policy, kind, identity }))
  }

  /** Reads them if one was written since the last time. */
  look(): Promise<void> {
    const look = this.#last.then(() => this.#look())
    this.#last = look.catch(() => {})
    return look
  }

  async #look(): Promise<void> {
    const mark = await this.#saved.mark()
    if (mark === this.#mark) return
    const byClient = new Map<string, StoredOverride>()
    const kinds = new Map<string, Set<string>>()
    for (const [field, { policy, kind, limits, version, until }] of await this.#saved.all()) {
      const last = this.#byClient.get(field)
      const before = last?.isWrong ? last.before : last && { ...last, before: undefined }
      byClient.set(field, { limits: JSON.stringify(limits), version, until, before, isWrong: false })
      const known = kinds.get(policy) ?? new Set<string>()
      if (known.size < MAX_KINDS) kinds.set(policy, known.add(kind))
    }
    this.#byClient = byClient
    // In alphabetical order, which decides among several kinds of one request.
    this.#kinds = new Map([...kinds].map(([policy, known]) => [policy, new Set([...known].sort())]))
    this.#mark = mark
    this.#onChange()
  }
}

const NO_KINDS: ReadonlySet<string> = new Set()

function fieldOf({ policy, kind, identity }: Omit<OverridePlace, 'value'>): string {
  return `${policy}\n${kind}\n${identity}`
}

/** A value may contain line breaks. */
function placeIn(field: string): Omit<OverridePlace, 'value'> {
  const [policy = '', kind = '', ...rest] = field.split('\n')
  return { policy, kind, identity: rest.join('\n') }
}

/** Undefined for a text that is not ours. */
function overrideIn(text: unknown): SavedOverride | undefined {
  try {
    const found = JSON.parse(String(text)) as SavedOverride
    const { policy, kind, value, limits, until } = found
    const isOurs = [policy, kind, value].every((each) => typeof each === 'string') && Number.isFinite(until)
    return isOurs && Array.isArray(limits) ? found : undefined
  } catch {
    return undefined
  }
}

function isInForce({ until = 0 }: SavedOverride): boolean {
  return until > Date.now()
}
