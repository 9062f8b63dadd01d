import { erasedField } from '../../../packages/core/src/redis/blocks/entry.js'

/** The additional life of entries in the index with a clock other than that of Redis. */
export const SLACK_MS = 3_600_000
export const DAY_MS = 86_400_000

interface Entry {
  readonly version: number
  readonly ends: number
  readonly since: number
  readonly times: number
  readonly isEnded: boolean
  readonly reason: string
}

export type Op = readonly [
  field: string,
  op: 'BLOCK' | 'KEEP' | 'END' | 'ERASE',
  first: number,
  second: number,
  third: number,
  reason: string,
]

/** Salts of erased names. One is the start of another. */
export const SALTS = ['s-1', 's-1_2'] as const

/** One shard of the index of blocks, as lua/index.lua describes it. */
export class Shard {
  /** Undefined if the shard is missing or incomplete. */
  head: { version: number; incarnation: string; epoch: number } | undefined
  readonly entries = new Map<string, Entry>()
  /** The epoch in the rest of an incomplete shard. */
  epochLeft = 0
  /** The lives of the hash and the sorted set, in ms. */
  life = 0
  changesLife = 0
  markerLife = 0
  /** The values of block keys. */
  readonly blocks = new Map<string, string>()
  /** Fields of which the last change has deleted the block and the strikes. */
  readonly cleared = new Set<string>()

  change(now: number, incarnation: string, known: number, ops: readonly Op[], hasMarker: boolean): string[] {
    if (!this.head) {
      this.entries.clear()
      this.life = 0
      this.changesLife = 0
    }
    this.head ??= { version: 0, incarnation, epoch: this.epochLeft }
    this.epochLeft = 0
    const { head } = this
    head.epoch = Math.max(head.epoch, known)
    const reply = [String(now), String(head.version), '']
    for (let look = 0; look < 2; look++) this.#sweep(now)
    let needed = Math.max(1000, known + DAY_MS - now)
    this.cleared.clear()
    for (const op of ops) {
      const { text, life } = this.#change(now, op, hasMarker)
      reply.push(text)
      needed = Math.max(needed, life)
    }
    this.life = Math.max(this.life, needed)
    this.changesLife = Math.max(this.changesLife, needed)
    this.#forgetChanges()
    reply[2] = this.headText
    return reply
  }

  get headText(): string {
    const { version, incarnation, epoch } = this.head as NonNullable<Shard['head']>
    return `${version} ${incarnation} ${epoch}`
  }

  page(now: number, after: number, most: number, field: string): string[] {
    if (!this.head) return [String(now), '', '1']
    const isAsKnown = field === '' || (this.entries.get(field)?.version ?? -1) === after
    const found = this.#byVersion.filter(([, { version }]) => version > after).slice(0, most)
    const changes = found.flatMap(([name, entry]) => [String(entry.version), name, textOf(entry)])
    return [String(now), this.headText, isAsKnown ? '1' : '0', ...changes]
  }

  clear(now: number, incarnation: string, most: number): string[] {
    const fields = this.#byVersion.slice(0, most).map(([field]) => field)
    for (const field of fields) this.entries.delete(field)
    const { version, incarnation: own } = this.head ?? { version: 0, incarnation }
    this.head = { version: version + 1, incarnation: own, epoch: now }
    this.life = Math.max(DAY_MS, this.life)
    this.#forgetChanges()
    return [String(now), ...fields]
  }

  get #byVersion(): [string, Entry][] {
    return [...this.entries].sort(([, a], [, b]) => a.version - b.version)
  }

  #sweep(now: number): void {
    const { size } = this.entries
    if (size === 0) return
    const [field, { ends }] = this.#byVersion[(this.head?.version ?? 0) % size] as [string, Entry]
    if (ends + SLACK_MS <= now) this.entries.delete(field)
    this.#forgetChanges()
  }

  /** Redis removes an empty sorted set. */
  #forgetChanges(): void {
    if (this.entries.size === 0) this.changesLife = 0
  }

  #change(
    now: number,
    [field, op, first, second, third, reason]: Op,
    hasMarker: boolean,
  ): { text: string; life: number } {
    const head = this.head as NonNullable<Shard['head']>
    const known = this.entries.get(field)
    const next = this.#entryFor(now, [field, op, first, second, third, reason], known, head)
    if (next) {
      const under = op === 'ERASE' ? reason : field
      const salt = SALT.exec(under)?.[1]
      if (salt && !head.incarnation.split('~').includes(salt)) head.incarnation += `~${salt}`
      head.version++
      if (op === 'ERASE') this.entries.delete(field)
      this.entries.set(under, { ...next, version: head.version })
    }
    if (hasMarker && (op === 'END' || op === 'ERASE')) {
      if (third === 0 || (next && known)) {
        this.blocks.delete(field)
        this.cleared.add(field)
      }
    } else if (hasMarker && next) {
      this.blocks.set(field, `${next.ends} ${next.reason}`)
      this.markerLife = Math.max(this.markerLife, next.ends - now + SLACK_MS)
    }
    const held = next ?? known
    return { text: `${next ? 1 : 0}${held ? textOf(held) : ''}`, life: next ? next.ends - now + SLACK_MS : 0 }
  }

  #entryFor(
    now: number,
    [field, op, first, second, third, reason]: Op,
    known: Entry | undefined,
    { epoch }: { epoch: number },
  ): Omit<Entry, 'version'> | undefined {
    const times = known?.times ?? 0
    const erased = Math.max(0, ...SALTS.map((salt) => this.entries.get(erasedField(field, salt))?.since ?? 0))
    const least = Math.max(now, epoch + 1, erased + 1)
    if (op === 'BLOCK')
      return {
        ends: second > 0 ? second : now + first,
        since: Math.max(least, known ? known.since + (known.isEnded ? 1 : 0) : 0),
        times: times + 1,
        isEnded: false,
        reason,
      }
    if (op === 'KEEP') {
      const isNewer = first > now && second > Math.max(epoch, erased) && (!known || known.since < second)
      const merged = { ends: first, since: second, times: third > 0 ? third : times + 1, isEnded: false, reason }
      return isNewer ? merged : undefined
    }
    const ends = Math.max(first, second > 0 ? 0 : (known?.ends ?? 0))
    if (ends + SLACK_MS <= now || (third > 0 && Math.max(known?.since ?? 0, erased) > third)) return undefined
    const since = third > 0 ? third : Math.max(least, known?.since ?? 0)
    const end = { ends, since, times, isEnded: true, reason }
    if (op === 'END') return end
    const other = this.entries.get(reason)
    return {
      ...end,
      ends: Math.max(ends, other?.ends ?? 0),
      since: Math.max(since, other?.since ?? 0),
      times: 0,
      reason: '',
    }
  }
}

/** The field of an erased name. */
const SALT = /^\["","#(\d+\.[\w-]+)\.[\da-f]+"\]$/

function textOf({ ends, since, times, isEnded, reason }: Omit<Entry, 'version'>): string {
  return `${ends} ${since} ${times} ${isEnded ? 1 : 0} ${reason}`
}
