import { CONSUME, isDecision, refusalBy, type StoreRequest, type StoreResult } from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import type { IndexEntry } from '../blocks/entry.js'
import type { KnownBlock } from '../blocks/mirror.js'
import type { MirroredBlocks } from '../blocks/mirrored-blocks.js'
import type { RedisBase } from '../slots/base.js'
import { confirmedBlock } from './block-checks.js'
import type { Layer } from './layer.js'
import { UnderWay } from './under-way.js'

export interface KnownBlocksOptions extends RedisBase {
  readonly mirrored: MirroredBlocks
  readonly connectTimeoutMs: number
  /** Whether a block that Redis has confirmed refuses for a moment without a further check. */
  readonly remembers: boolean
}

/** How long a confirmed block needs no further check, in ms. Its end may go unnoticed for as long. */
const CONFIRMED_MS = 1000

/** Refuses by the blocks and bans that this process knows, once Redis has confirmed them. */
export class KnownBlocks implements Layer {
  readonly #options: KnownBlocksOptions
  readonly #next: Layer
  readonly #now: () => number
  /** Decisions that check a block with Redis: the layers beneath do not know of them yet. */
  readonly #confirming = new UnderWay()
  /** Set until this process has read the index: networks have no keys that decisions could check. */
  #starting: Promise<void> | undefined
  #isClosed = false

  constructor(options: KnownBlocksOptions, next: Layer) {
    this.#options = options
    this.#next = next
    this.#now = options.clock ?? (() => performance.now())
    this.#starting = this.#start().then(() => {
      this.#starting = undefined
    })
  }

  /** Resolves once the index was read, or reading it has failed. */
  get starting(): Promise<void> | undefined {
    return this.#starting
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    if (!isDecision(request.op)) return this.#next.decide(request)
    if (this.#starting && request.identities.some((identity) => identity.startsWith('ip='))) {
      return this.#starting.then(() => {
        if (this.#isClosed) throw new SluiceError('STORE_UNAVAILABLE', 'redis: the store is closed')
        return this.decide(request)
      })
    }
    const { mirrored, slots } = this.#options
    const entry = mirrored.find(request)
    if (!entry) return this.#next.decide(request)
    if (this.#isConfirmed(request, entry)) return this.#refused(entry, 'deny-cache')
    return slots.causeFor(request.identities)
      ? this.#refused(entry, 'mirror')
      : this.#confirming.note(this.#passOn(request))
  }

  onResult({ plan, identities }: StoreRequest, result: StoreResult, _slot: number, sentAt: number): void {
    const { block, now } = result
    if (!block) return
    const { mirrored, clock } = this.#options
    if (plan.ban && block.hasBegun) mirrored.began(plan.ban, identities[plan.ban.identity] as string, now, block)
    const entry = mirrored.find({ plan, identities })
    // If there are several blocks, only the one by which Redis refuses is confirmed.
    if (entry?.until === now + block.remainingMs) entry.confirmedAt = clock ? now : sentAt
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.mirrored.close()
    await this.#confirming.over()
  }

  async #passOn(request: StoreRequest): Promise<StoreResult> {
    const at = this.#now()
    const still = await confirmedBlock(this.#options, request)
    if (!still) return this.#next.decide(request)
    if (!still.source) still.entry.confirmedAt = at
    return this.#refused(still.entry, still.source)
  }

  #isConfirmed({ op, fresh }: StoreRequest, { confirmedAt }: KnownBlock): boolean {
    if (op !== CONSUME || fresh || !this.#options.remembers) return false
    const now = this.#now()
    return now >= confirmedAt && now < confirmedAt + CONFIRMED_MS
  }

  #refused(entry: IndexEntry, source?: 'mirror' | 'deny-cache'): StoreResult {
    const { now, block } = this.#options.mirrored.report(entry)
    return { ...refusalBy(block, now), ...(source && { source }) }
  }

  async #start(): Promise<void> {
    const { mirrored, connection, connectTimeoutMs } = this.#options
    let timer: NodeJS.Timeout | undefined
    let isOver = () => {}
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, connectTimeoutMs).unref()
      isOver = connection.whenReady(
        () => {},
        () => resolve(),
      )
    })
    await Promise.race([mirrored.looked, over])
    clearTimeout(timer)
    isOver()
  }
}
