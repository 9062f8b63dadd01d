import type { KeptRefusals, LastRefusal, LastRefusals } from '../../store/last-refusals.js'
import { outsideRequests } from '../../util/outside-requests.js'

/** Refusals that a process keeps. */
const KEPT_REFUSALS = 200
/** How long a refusal is kept, in ms. */
export const REFUSALS_LIFE_MS = 900_000
/** Interval in ms at which a process writes its refusals, while anything reads them. */
const EVERY_MS = 1000

/** The refusals of several processes, beside each other. */
export interface SharedRefusals {
  /** Notes that something reads, for the next seconds. */
  open(): Promise<void>
  isOpen(): Promise<boolean>
  /** Replaces the refusals of this process. */
  write(kept: KeptRefusals): Promise<void>
  /** Those of each other process. */
  readOthers(): Promise<readonly KeptRefusals[]>
  /** When identities were forgotten, by a hash of each. */
  forgotten(): Promise<ReadonlyMap<string, number>>
  forget(identity: string): Promise<void>
  hashOf(identity: string): string
}

/** The last refusals of this process, which are written to a store only while something reads them. */
export class RecentRefusals implements LastRefusals {
  readonly #shared: SharedRefusals | undefined
  /** In the order in which they came. */
  #kept: LastRefusal[] = []
  #droppedAt: number | undefined
  #timer: NodeJS.Timeout | undefined
  #isWritten = true
  #isClosed = false

  /** @param shared undefined if there are no other processes */
  constructor(shared?: SharedRefusals) {
    this.#shared = shared
  }

  note(refusal: LastRefusal): void {
    if (this.#isClosed) return
    this.#kept.push(refusal)
    // Shortened in large steps, as each takes as long as it is large.
    if (this.#kept.length >= 2 * KEPT_REFUSALS) {
      this.#droppedAt = this.#kept.at(-KEPT_REFUSALS - 1)?.at
      this.#kept = this.#kept.slice(-KEPT_REFUSALS)
    }
    this.#isWritten = false
    if (this.#shared) this.#timer ??= this.#later()
  }

  async read(): Promise<KeptRefusals> {
    await this.#shared?.open()
    const processes = [this.#present(), ...((await this.#shared?.readOthers()) ?? [])]
    const gone = await this.#shared?.forgotten()
    const all = processes.flatMap(({ refusals }) => refusals)
    const left = gone ? all.filter((refusal) => !this.#isForgotten(refusal, gone)) : all
    const dropped = processes.flatMap(({ droppedAt }) => droppedAt ?? []).filter((at) => isRecent({ at }))
    return {
      refusals: left.filter(isRecent).sort((one, other) => other.at - one.at),
      droppedAt: dropped.length > 0 ? Math.max(...dropped) : undefined,
    }
  }

  /** Erases those of an identity: here at once, in other processes within a second. */
  async forget(identity: string): Promise<void> {
    this.#kept = this.#kept.filter(({ identities }) => !identities.includes(identity))
    await this.#shared?.forget(identity)
  }

  clear(): void {
    this.#kept = []
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.clear()
  }

  #present(): KeptRefusals {
    const droppedAt = this.#kept.at(-KEPT_REFUSALS - 1)?.at ?? this.#droppedAt
    return { refusals: this.#kept.slice(-KEPT_REFUSALS).filter(isRecent), droppedAt }
  }

  #later(): NodeJS.Timeout {
    return outsideRequests(() => setTimeout(() => void this.#tick(), EVERY_MS).unref())
  }

  async #tick(): Promise<void> {
    // Redis may be away: then it is tried again.
    const isOpen = await this.#share().catch(() => false)
    this.#kept = this.#kept.filter(isRecent)
    const goesOn = !this.#isClosed && this.#kept.length > 0 && (isOpen || !this.#isWritten)
    this.#timer = goesOn ? this.#later() : undefined
  }

  /** Writes what is new, while something reads. Resolves to whether it does. */
  async #share(): Promise<boolean> {
    const shared = this.#shared as SharedRefusals
    if (!(await shared.isOpen())) return false
    const gone = await shared.forgotten()
    const left = this.#kept.filter((refusal) => !this.#isForgotten(refusal, gone))
    if (left.length === this.#kept.length && this.#isWritten) return true
    this.#kept = left
    this.#isWritten = true
    try {
      await shared.write(this.#present())
    } catch (error) {
      this.#isWritten = false
      throw error
    }
    return true
  }

  #isForgotten({ at, identities }: LastRefusal, gone: ReadonlyMap<string, number>): boolean {
    if (gone.size === 0) return false
    return identities.some((identity) => at <= (gone.get(this.#shared?.hashOf(identity) ?? '') ?? 0))
  }
}

function isRecent({ at }: Pick<LastRefusal, 'at'>): boolean {
  return at > Date.now() - REFUSALS_LIFE_MS
}
