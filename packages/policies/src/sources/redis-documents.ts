import { MAX_LISTED, type SavedDocument, type SavedDocuments, VersionConflict } from './saved-documents.js'

/** Sends one command to Redis. */
export type Call = (command: string, ...args: string[]) => Promise<unknown>

/**
 * Saves where the version is still the expected one: where two authors change one version, the second is refused.
 *
 * KEYS the versions, newest first, and the mark of the newest; ARGV expected version, text, by, versions to keep
 *
 * Returns the version in force then, negative where nothing was saved.
 */
const SAVE = `
local newest = redis.call('LINDEX', KEYS[1], 0)
local version = newest and cjson.decode(newest).version or 0
if version ~= tonumber(ARGV[1]) then return -version - 1 end
local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('LPUSH', KEYS[1], cjson.encode({ version = version + 1, text = ARGV[2], by = ARGV[3], at = at }))
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[4]) - 1)
redis.call('SET', KEYS[2], string.format('%d %.0f', version + 1, at))
return version + 1
`

/** The versions of a document in Redis. */
export class RedisDocuments implements SavedDocuments {
  readonly #call: Call
  readonly #versions: string
  readonly #newest: string

  /** @param prefix that of the store, `sluice:` by default */
  constructor(call: Call, name: string, prefix: string) {
    this.#call = call
    // One hash tag, so that both are on one node of a cluster.
    this.#versions = `${prefix}policies:{${name}}:versions`
    this.#newest = `${prefix}policies:{${name}}:newest`
  }

  /** The number of the version in force; 0 where none was saved. */
  async version(): Promise<number> {
    return Number((await this.mark()).split(' ', 1)[0])
  }

  /**
   * The mark of the version in force, as `markOf`: numbers begin anew where Redis has lost its data. Empty where none was
   * saved.
   */
  async mark(): Promise<string> {
    return String((await this.#call('GET', this.#newest)) ?? '')
  }

  /** Undefined if none was saved. */
  async newest(): Promise<SavedDocument | undefined> {
    const text = await this.#call('LINDEX', this.#versions, '0')
    return text ? (JSON.parse(String(text)) as SavedDocument) : undefined
  }

  /** The last twenty, newest first. Texts that are not ours are left out. */
  async history(): Promise<readonly SavedDocument[]> {
    const all = (await this.#call('LRANGE', this.#versions, '0', '-1')) as readonly unknown[]
    return all.flatMap((text) => savedIn(String(text)) ?? [])
  }

  /**
   * Saves a version on top of the expected one in force, and resolves to its number.
   *
   * @throws VersionConflict where another one is
   */
  async save(text: string, expected: number, by: string): Promise<number> {
    const args = [this.#versions, this.#newest, String(expected), text, by, String(MAX_LISTED)]
    const version = Number(await this.#call('EVAL', SAVE, '2', ...args))
    if (version < 0) throw new VersionConflict(expected, -version - 1)
    return version
  }
}

/** Undefined for a text that is not ours. */
function savedIn(text: string): SavedDocument | undefined {
  try {
    const saved = JSON.parse(text) as SavedDocument
    const { version, by, at } = saved
    const isOurs =
      [saved.text, by].every((each) => typeof each === 'string') && [version, at].every(Number.isSafeInteger)
    return isOurs ? saved : undefined
  } catch {
    return undefined
  }
}
