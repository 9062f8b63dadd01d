import type { StoreTime } from '../../redis/blocks/store-time.js'
import { callKey } from '../../redis/scripts/run.js'
import type { RedisBase } from '../../redis/slots/base.js'
import type { SharedNotes } from '../../store/shared-notes.js'
import { hashOf } from '../../util/hash.js'
import { randomId } from './memory-notes.js'
import type { SharedRefusals } from './recent-refusals.js'

/** How long a process is remembered that has written, in ms: longer than any of its texts. */
const MEMBER_MS = 93_600_000
const MAX_MEMBERS = 200
/** Keys that are read at a time. */
const AT_A_TIME = 100

interface TimedBase extends RedisBase {
  readonly time: StoreTime
}

/** The notes of processes in Redis, on one master of a cluster: a key for each text, and two for each id. */
export class RedisNotes implements SharedNotes {
  readonly #base: TimedBase
  readonly #start: string
  readonly #refusals: Pick<SharedRefusals, 'forgotten' | 'hashOf'>

  /** @param refusals has the identities that were forgotten */
  constructor(base: TimedBase, refusals: Pick<SharedRefusals, 'forgotten' | 'hashOf'>) {
    this.#base = base
    this.#start = `${base.prefix}{console}:`
    this.#refusals = refusals
  }

  now(): number {
    return this.#base.time.now()
  }

  async get(names: readonly string[]): Promise<(string | undefined)[]> {
    const texts: (string | undefined)[] = []
    for (let at = 0; at < names.length; at += AT_A_TIME) {
      texts.push(...(await Promise.all(names.slice(at, at + AT_A_TIME).map((name) => this.#text(name)))))
    }
    return texts
  }

  async set(name: string, text: string, forMs: number): Promise<void> {
    await this.#call('SET', name, text, 'PX', String(forMs))
  }

  async join(member: string): Promise<void> {
    const now = Date.now()
    await this.#call('ZADD', 'members', String(now), member)
    await this.#call('PEXPIRE', 'members', String(MEMBER_MS))
    await this.#call('ZREMRANGEBYSCORE', 'members', '-inf', String(now - MEMBER_MS))
  }

  async members(since: number): Promise<readonly string[]> {
    const reply = await this.#call('ZRANGEBYSCORE', 'members', String(since), '+inf')
    return Array.isArray(reply) ? reply.map(String).slice(-MAX_MEMBERS) : []
  }

  async idsOf(identities: readonly string[], forMs: number): Promise<readonly string[]> {
    const ids: string[] = []
    for (let at = 0; at < identities.length; at += AT_A_TIME) {
      ids.push(...(await Promise.all(identities.slice(at, at + AT_A_TIME).map((each) => this.#idOf(each, forMs)))))
    }
    return ids
  }

  async identitiesOf(ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.get(ids.map((id) => `client:${id}`))
  }

  async forgottenSince(at: number): Promise<((identity: string) => boolean) | undefined> {
    const all = await this.#refusals.forgotten()
    if (all.size === 0) return undefined
    return (identity) => (all.get(this.#refusals.hashOf(identity)) ?? 0) > at
  }

  async forget(identity: string): Promise<void> {
    const name = `id:${hashOf(identity)}`
    const id = await this.#text(name)
    if (id !== undefined) await this.#call('DEL', `client:${id}`)
    await this.#call('DEL', name)
  }

  /** The identity is written first: an id that any process has resolves. */
  async #idOf(identity: string, forMs: number): Promise<string> {
    const name = `id:${hashOf(identity)}`
    const known = await this.#text(name)
    if (known !== undefined && Number(await this.#call('PTTL', `client:${known}`)) >= forMs) return known
    const id = known ?? randomId()
    // A little longer, so that an id that was just looked up is not written anew each time.
    const life = String(Math.ceil(forMs * 1.1))
    await this.#call('SET', `client:${id}`, identity, 'PX', life)
    const isOwn = await this.#call('SET', name, id, 'PX', life, ...(known === undefined ? ['NX'] : []))
    return isOwn === null ? ((await this.#text(name)) ?? id) : id
  }

  /** Undefined for a foreign value. */
  async #text(name: string): Promise<string | undefined> {
    try {
      const text = await this.#call('GET', name)
      return text === null ? undefined : String(text)
    } catch (error) {
      if (/WRONGTYPE/.test(String(error))) return undefined
      throw error
    }
  }

  #call(command: string, name: string, ...args: string[]): Promise<unknown> {
    return callKey(this.#base, command, this.#start + name, ...args)
  }
}
