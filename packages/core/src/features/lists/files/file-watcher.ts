import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { stampOf } from './stamp.js'

/** A file that is written in place counts as complete once it has been unchanged for this time. */
const QUIET_MS = 200
/** The interval of polls, in addition to events of the file system: some have none, such as network drives. */
const POLL_MS = 5000
/** The same where the file system cannot be watched. */
const POLL_UNWATCHED_MS = 1000

/**
 * Notices when a file has new contents. The directory is watched, since a file that is renamed onto the path is another
 * file. Nothing here keeps the process alive.
 */
export class FileWatcher {
  readonly #path: string
  readonly #onChange: () => void
  readonly #onMissing: (error: Error) => void
  #watcher: FSWatcher | undefined
  #watched: string | undefined
  #poll: NodeJS.Timeout | undefined
  #quietTimer: NodeJS.Timeout | undefined
  /** The contents that are known already, and the file that they were in. */
  #known = ''
  /** The contents that were seen last, and since when they are unchanged. */
  #seen = ''
  #seenAt = 0
  #isLooking = false
  #looksAgain = false
  #isClosed = false

  constructor(path: string, onChange: () => void, onMissing: (error: Error) => void) {
    this.#path = path
    this.#onChange = onChange
    this.#onMissing = onMissing
    void this.#tick()
  }

  /** These contents have been read. */
  know(stamp: string): void {
    this.#known = stamp
  }

  /** Checks for new contents. */
  look(isPoll = false): void {
    if (this.#isClosed) return
    if (this.#isLooking) {
      this.#looksAgain = true
      return
    }
    this.#isLooking = true
    void this.#look(isPoll).finally(() => {
      this.#isLooking = false
      if (!this.#looksAgain) return
      this.#looksAgain = false
      this.look()
    })
  }

  close(): void {
    this.#isClosed = true
    this.#unwatch()
    clearTimeout(this.#poll)
    clearTimeout(this.#quietTimer)
  }

  async #look(isPoll: boolean): Promise<void> {
    try {
      const stats = await stat(this.#path, { bigint: true })
      if (this.#isClosed) return
      const stamp = stampOf(stats)
      if (stamp === this.#known) {
        clearTimeout(this.#quietTimer)
        return
      }
      const now = performance.now()
      if (stamp !== this.#seen) {
        this.#seen = stamp
        this.#seenAt = now
      }
      // A rename changes the ctime of the file, not its mtime. Contents written before that are complete.
      const wasRenamed = stats.ctimeNs > stats.mtimeNs && !isSameFile(stamp, this.#known)
      const quietMs = Math.max(now - this.#seenAt, Date.now() - Number(stats.mtimeMs))
      if (wasRenamed || quietMs >= QUIET_MS) {
        clearTimeout(this.#quietTimer)
        this.#onChange()
      } else this.#lookLater()
    } catch (error) {
      // Between two events of one replacement there may be no file. One that stays away is reported by the next poll.
      if (isPoll || this.#known === '') this.#onMissing(error as Error)
    }
  }

  #lookLater(): void {
    clearTimeout(this.#quietTimer)
    this.#quietTimer = setTimeout(() => this.look(), QUIET_MS).unref()
  }

  async #tick(): Promise<void> {
    await this.#watchDirectory()
    if (this.#isClosed) return
    this.look(true)
    const afterMs = this.#watcher ? POLL_MS : POLL_UNWATCHED_MS
    this.#poll = setTimeout(() => void this.#tick(), afterMs).unref()
  }

  /** Watches the directory, again where it was replaced. */
  async #watchDirectory(): Promise<void> {
    const directory = dirname(this.#path)
    try {
      const { dev, ino } = await stat(directory)
      const id = `${dev},${ino}`
      if (this.#isClosed || (this.#watcher && id === this.#watched)) return
      this.#unwatch()
      // Changes of any name count: where the path is a link, another name changes.
      this.#watcher = watch(directory, { persistent: false }, () => this.look())
      this.#watcher.on('error', () => this.#unwatch())
      this.#watched = id
    } catch {
      // Too many watchers, or no directory: polls suffice.
      this.#unwatch()
    }
  }

  #unwatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }
}

function isSameFile(stamp: string, other: string): boolean {
  return stamp.split(',', 2).join() === other.split(',', 2).join()
}
