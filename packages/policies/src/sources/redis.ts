import { SluiceError } from '@sluice/core'
import { type Call, RedisDocuments } from './redis-documents.js'
import { RedisOverrides, RedisSavedOverrides } from './redis-overrides.js'
import { markOf } from './saved-documents.js'
import type { Loaded, PoliciesSource } from './source.js'

/** The interval at which each process looks for a new version. */
const POLL_MS = 500

/** A document in Redis, as `sluice apply` saves it. */
export class RedisSource implements PoliciesSource {
  readonly name: string
  readonly overrides: RedisOverrides
  readonly saved: RedisSavedOverrides
  readonly writer: RedisSavedOverrides | undefined
  readonly documents: NonNullable<PoliciesSource['documents']>
  readonly #documents: RedisDocuments
  #mark = ''
  /** Whether a look or a load has failed since the last load. */
  #hasFailed = false
  #timer: NodeJS.Timeout | undefined

  constructor(client: unknown, name: string, prefix: string, save: unknown) {
    this.name = `redis:${name}`
    const call = callOf('redis', client)
    this.#documents = new RedisDocuments(call, name, prefix)
    this.saved = new RedisSavedOverrides(call, name, prefix)
    this.overrides = new RedisOverrides(this.saved)
    const write = save === undefined ? undefined : callOf('save', save)
    this.writer = write && new RedisSavedOverrides(write, name, prefix)
    this.documents = { name, reader: this.#documents, writer: write && new RedisDocuments(write, name, prefix) }
  }

  async load(): Promise<Loaded> {
    this.#hasFailed = true
    const saved = await this.#documents.newest()
    await this.overrides.look()
    this.#mark = saved ? markOf(saved) : ''
    this.#hasFailed = false
    if (!saved) throw new Error('Redis has none so far: sluice apply saves one')
    return { name: this.name, version: String(saved.version), mark: this.#mark, text: saved.text }
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): void {
    const poll = async () => {
      try {
        await this.overrides.look()
        const mark = await this.#documents.mark()
        // Only a load shows that the document can be read again.
        if (mark !== this.#mark || this.#hasFailed) onChange()
      } catch (error) {
        this.#hasFailed = true
        onFailure(error as Error)
      }
      if (this.#timer) this.#timer = setTimeout(() => void poll(), POLL_MS).unref()
    }
    this.#timer = setTimeout(() => void poll(), POLL_MS).unref()
  }

  refresh(): Promise<void> {
    return this.overrides.look()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

interface AnyClient {
  readonly call?: (...args: string[]) => Promise<unknown>
  readonly sendCommand?: (args: string[]) => Promise<unknown>
  readonly duplicate?: unknown
}

/** The call of a client of ioredis or of redis. */
function callOf(option: string, client: unknown): Call {
  const { call, sendCommand } = (client ?? {}) as AnyClient
  if (typeof call === 'function') return (...args) => call.apply(client, args)
  if (typeof sendCommand === 'function') return (...args) => sendCommand.call(client, args)
  throw new SluiceError('INVALID_POLICY', `policies.from: ${option}: expected a client of ioredis or of redis`)
}
