import { randomUUID } from 'node:crypto'
import { callKey } from '../../redis/scripts/run.js'
import { scoresIn } from '../../redis/scripts/scores.js'
import type { RedisBase } from '../../redis/slots/base.js'
import type { KeptRefusals, LastRefusal } from '../../store/last-refusals.js'
import { hashOf } from '../../util/hash.js'
import { isRecord } from '../../util/is-record.js'
import { REFUSALS_LIFE_MS, type SharedRefusals } from './recent-refusals.js'

/** How long a reader is believed to read on, in ms. */
const OPEN_MS = 10_000
/** Bytes of the refusals of one process. */
const MAX_BYTES = 262_144
/** Later instants are none that a process notes. */
const LATEST_MS = 2 ** 48
/** Processes whose refusals are read. */
const MAX_PROCESSES = 200

/** The last refusals of processes in Redis: one text for each, on one master of a cluster. */
export class RedisRecentRefusals implements SharedRefusals {
  readonly #base: RedisBase
  readonly #process = randomUUID()
  /** The start of all keys. */
  readonly #start: string

  constructor(base: RedisBase) {
    this.#base = base
    this.#start = `${base.prefix}{console}:`
  }

  async open(): Promise<void> {
    await this.#call('SET', 'open', '1', 'PX', String(OPEN_MS))
  }

  async isOpen(): Promise<boolean> {
    return (await this.#call('GET', 'open')) !== null
  }

  async write(kept: KeptRefusals): Promise<void> {
    await this.#write(this.#process, kept)
    const now = Date.now()
    await this.#call('ZADD', 'processes', String(now), this.#process)
    await this.#expire('processes', now)
  }

  async readOthers(): Promise<readonly KeptRefusals[]> {
    const others = (await this.#processes()).filter((name) => name !== this.#process)
    return Promise.all(others.map((name) => this.#read(name)))
  }

  async forgotten(): Promise<ReadonlyMap<string, number>> {
    const since = String(Date.now() - REFUSALS_LIFE_MS)
    const reply = await this.#call('ZRANGEBYSCORE', 'forgotten', since, '+inf', 'WITHSCORES')
    return new Map(scoresIn(reply))
  }

  async forget(identity: string): Promise<void> {
    const now = Date.now()
    // First, so that no process writes it again.
    await this.#call('ZADD', 'forgotten', String(now), hashOf(identity))
    await this.#expire('forgotten', now)
    for (const name of await this.#processes()) {
      const { refusals, droppedAt } = await this.#read(name)
      const left = refusals.filter(({ identities }) => !identities.includes(identity))
      if (left.length < refusals.length) await this.#write(name, { refusals: left, droppedAt })
    }
  }

  hashOf(identity: string): string {
    return hashOf(identity)
  }

  async #processes(): Promise<string[]> {
    const since = String(Date.now() - REFUSALS_LIFE_MS)
    const reply = await this.#call('ZRANGEBYSCORE', 'processes', since, '+inf')
    return Array.isArray(reply) ? reply.map(String).slice(-MAX_PROCESSES) : []
  }

  async #read(name: string): Promise<KeptRefusals> {
    const text = await this.#call('GET', `refusals:${name}`)
    try {
      const read: unknown = JSON.parse(String(text))
      return Array.isArray(read) ? keptIn(read) : NOTHING
    } catch {
      // Written by another version, or by anyone.
      return NOTHING
    }
  }

  async #write(name: string, { refusals, droppedAt }: KeptRefusals): Promise<void> {
    const textFrom = (from: number) => {
      const at = from > 0 ? refusals[from - 1]?.at : droppedAt
      return JSON.stringify([...refusals.slice(from), ...(at === undefined ? [] : [{ droppedAt: at }])])
    }
    let text = textFrom(0)
    for (let from = 1; text.length > MAX_BYTES; from *= 2) text = textFrom(Math.min(from, refusals.length))
    await this.#call('SET', `refusals:${name}`, text, 'PX', String(REFUSALS_LIFE_MS))
  }

  /** Removes what is old from a sorted set by times. */
  async #expire(name: string, now: number): Promise<void> {
    await this.#call('ZREMRANGEBYSCORE', name, '-inf', String(now - REFUSALS_LIFE_MS))
    await this.#call('PEXPIRE', name, String(REFUSALS_LIFE_MS))
  }

  #call(command: string, name: string, ...args: string[]): Promise<unknown> {
    return callKey(this.#base, command, this.#start + name, ...args)
  }
}

const NOTHING: KeptRefusals = { refusals: [], droppedAt: undefined }

/** Beside the refusals stands when the newest one was dropped. Earlier versions write only refusals, and read no more. */
function keptIn(read: readonly unknown[]): KeptRefusals {
  const droppedAt = read
    .map((value) =>
      isRecord(value) && Object.hasOwn(value, 'droppedAt') ? (value as KeptRefusals).droppedAt : undefined,
    )
    .find(isTime)
  return { refusals: read.filter(isRefusal), droppedAt }
}

function isTime(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) < LATEST_MS
}

function isRefusal(value: unknown): value is LastRefusal {
  const { at, policy, limit = '', reason, path = '', identities } = (value ?? {}) as Partial<LastRefusal>
  const areTexts = [policy, limit, reason, path].every(isText)
  return isTime(at) && areTexts && Array.isArray(identities) && identities.every(isText)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
