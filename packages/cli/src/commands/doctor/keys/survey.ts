import { NotPermitted } from '../../../redis/redis-failure.js'
import type { Server } from '../../../redis/server.js'
import type { DoctorOptions } from '../options.js'
import { classify, type OurKey } from './classify.js'

/** A random sample of the offered items, every item with the same chance. */
class Sample<T> {
  readonly #max: number
  readonly #items: T[] = []
  #offered = 0

  constructor(max: number) {
    this.#max = max
  }

  get items(): readonly T[] {
    return this.#items
  }

  offer(item: T): void {
    this.#offered++
    if (this.#items.length < this.#max) {
      this.#items.push(item)
      return
    }
    const place = Math.floor(Math.random() * this.#offered)
    if (place < this.#max) this.#items[place] = item
  }
}

/** Keys per SCAN: a fraction of a millisecond of Redis's time. */
const KEYS_PER_SCAN = 500

/** The measurements of one key. */
export interface Measured extends OurKey {
  /** Undefined if MEMORY USAGE is not permitted. */
  readonly bytes: number | undefined
  /** Undefined if PTTL is not permitted. */
  readonly hasExpiry: boolean | undefined
}

/** The findings of one server. */
export interface Survey {
  /** Keys that SCAN returned, of any program. */
  readonly seen: number
  /** All keys, of any program; at least `seen`. */
  readonly total: number
  /** Numbers of our keys that were seen, by layout, use and policy. */
  readonly ours: readonly (OurKey & { readonly keys: number })[]
  readonly measured: readonly Measured[]
  readonly calls: number
  /** Keys without expiry, of any program. Undefined if INFO is not permitted. */
  readonly permanent: number | undefined
  /** Other databases with keys, by number. */
  readonly otherDatabases: readonly number[]
}

/**
 * Walks the keys by SCAN, at most `scanCalls` times, and measures a sample of ours. A walk that ends early has seen a random
 * part, as SCAN goes by the hashes of keys. Undefined if SCAN is not permitted, which is noted.
 */
export async function survey(server: Server, options: DoctorOptions): Promise<Survey | undefined> {
  const groups = new Map<string, OurKey & { keys: number }>()
  const sample = new Sample<string>(options.sample)
  let seen = 0
  let calls = 0
  let cursor = '0'
  do {
    // No MATCH: the number of foreign keys shows the progress of the walk, and the share of our keys.
    const reply = await server.tryCall('keys', 'SCAN', cursor, 'COUNT', KEYS_PER_SCAN)
    if (reply === undefined) return undefined
    const [next, keys] = reply as [string, string[]]
    calls++
    seen += keys.length
    for (const key of keys) {
      const ours = classify(key, options.prefix)
      if (!ours) continue
      sample.offer(key)
      const name = JSON.stringify([ours.layout, ours.use, ours.policy])
      const group = groups.get(name) ?? { ...ours, keys: 0 }
      group.keys++
      groups.set(name, group)
    }
    cursor = next
  } while (cursor !== '0' && calls < options.scanCalls)

  const total = cursor === '0' ? seen : Number((await server.tryCall('how many keys there are', 'DBSIZE')) ?? seen)
  return {
    seen,
    total: Math.max(seen, total),
    ours: [...groups.values()],
    measured: await measure(server, sample.items, options.prefix),
    calls,
    ...(await keyspaceOf(server)),
  }
}

async function measure(server: Server, keys: readonly string[], prefix: string): Promise<Measured[]> {
  const all = await Promise.all(
    keys.map(async (key) => {
      const [leftMs, bytes] = await Promise.all([
        server.tryCall('expiry of keys', 'PTTL', key),
        server.tryCall('memory of keys', 'MEMORY', 'USAGE', key),
      ])
      // It ended between two commands.
      if (leftMs === -2 || bytes === null) return []
      const size = bytes === undefined ? undefined : Number(bytes)
      const hasExpiry = leftMs === undefined ? undefined : leftMs !== -1
      return [{ ...(classify(key, prefix) as OurKey), bytes: size, hasExpiry }]
    }),
  )
  return all.flat()
}

async function keyspaceOf(server: Server): Promise<Pick<Survey, 'permanent' | 'otherDatabases'>> {
  try {
    const info = await server.info()
    const [, keys, expires] = /keys=(\d+),expires=(\d+)/.exec(info[`db${server.target.db}`] ?? '') ?? [0, 0, 0]
    const databases = Object.keys(info).flatMap((field) => /^db(\d+)$/.exec(field)?.[1] ?? [])
    return {
      permanent: Number(keys) - Number(expires),
      otherDatabases: databases.map(Number).filter((database) => database !== server.target.db),
    }
  } catch (error) {
    if (!(error instanceof NotPermitted)) throw error
    return { permanent: undefined, otherDatabases: [] }
  }
}
