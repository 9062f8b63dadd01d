import calculateSlot from 'cluster-key-slot'
import { isRange } from '../blocks/blocked-ranges.js'
import { identityText } from '../blocks/given-blocks.js'
import { checkedListName } from '../blocks/given-list-entries.js'
import { storeLists } from '../blocks/given-lists.js'
import { KeptList } from '../blocks/kept-list.js'
import { offendersOf, type RefusalLog, refusalLog } from '../offenders/refusal-log.js'
import type { StoreBlocks } from '../store/blocks.js'
import { CELL_KINDS } from '../store/cell-kinds.js'
import { cellsNamed, type NamedCell } from '../store/cell-names.js'
import { STORE_EVENTS, type StoreEvents } from '../store/events.js'
import type { StoreHealth, StoreStats } from '../store/health.js'
import type { IdentityByKind } from '../store/identity.js'
import type { StoreLists } from '../store/list.js'
import type { OffendersQuery, OffendersReport } from '../store/offenders.js'
import {
  type BanTerms,
  type BlockReport,
  type Cell,
  CHARGE,
  EVERY_POLICY,
  isImpossible,
  PEEK,
  type Plan,
  REFUND,
  RELEASE,
  type Store,
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
  type WaitingClass,
  type WaitingTurn,
} from '../store/store.js'
import type { StoreList } from '../store/store-list.js'
import { SluiceError } from '../util/errors.js'
import { Listeners } from '../util/listeners.js'
import { STORE_WARNINGS, type StoreWarning, Warnings } from '../util/warnings.js'
import { Batches, probeKey } from './batching/batches.js'
import { BlockKeys } from './blocks/block-keys.js'
import { fieldOf, type IndexEntry } from './blocks/entry.js'
import { type BlockQuestion, HeldBlocks } from './blocks/held-blocks.js'
import { MOST } from './blocks/mirror.js'
import { RedisBlocks } from './blocks/redis-blocks.js'
import { RedisLists } from './blocks/redis-lists.js'
import { StoreTime } from './blocks/store-time.js'
import { connect, type RedisClient } from './clients/connect.js'
import type { Connection } from './clients/connection.js'
import { Breaker, type StoreState } from './health/breaker.js'
import { HealthCheck } from './health/health-check.js'
import { blocksFor, type KeptState, namesIn, strikesIn } from './kept-state.js'
import { DenyCache } from './layers/deny-cache.js'
import { Leases } from './layers/leases/leases.js'
import { Relaxed } from './layers/relaxed/relaxed.js'
import { type CheckedOptions, checkedOptions, type RedisStoreOptions } from './options.js'
import { HeldPermits } from './permits/held-permits.js'
import { PermitLooks } from './permits/permit-looks.js'
import { RedisRefusals } from './redis-refusals.js'
import { keptReason, strikeResult } from './scripts/decode.js'
import { termsText } from './scripts/encode.js'
import {
  blockMarker,
  blockSuffix,
  cellSuffix,
  firstOfKeys,
  keyStart,
  prefixOf,
  strikesSuffix,
  waitingMarker,
  waitingSuffix,
} from './scripts/keys.js'
import { probe } from './scripts/probe.js'
import { deleteKeys, readKeys, run, whenConnected } from './scripts/run.js'
import { strikeScript, turnsScript } from './scripts/scripts.generated.js'
import { encodeWaiting } from './scripts/turns.js'
import { forgetKeys, restsOfKeys } from './scripts/walk-keys.js'
import { decideAcrossSlots, partsOfWhole } from './slots/across-slots.js'
import { EvictionWarning } from './warnings/eviction-warning.js'
import { IndexWarning } from './warnings/index-warning.js'

/**
 * A store in Redis, shared by every process and machine that uses the same server or cluster.
 *
 * Takes a client of `ioredis` (single, Sentinel or Cluster; 5.4 or later) or of `redis` (single or cluster;
 * 5 or later) and opens a connection of its own beside it, which ends with `close()` or with the client.
 * All decisions of one turn of the event loop go in one EVALSHA. Needs Redis 6.2 or later.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  const checked = checkedOptions(options)
  const lists = storeLists('redisStore', options)
  const listeners = new Listeners<StoreEvents>('redisStore', STORE_EVENTS)
  const warnings = new Warnings('redisStore', STORE_WARNINGS, options.warnings, listeners)
  const connection = connect(client, checked.timeoutMs, checked.connectTimeoutMs)
  return new RedisStore(connection, { ...checked, lists, warnings, listeners })
}

/** Whether a store decides by Redis, and what keeps it from that. */
export interface Readiness {
  readonly state: StoreState
  readonly cause: Error | undefined
}

/** Forgets strikes. */
const PARDON: Strike = { weight: 0, jitterMs: 0, reason: '' }

const FULL =
  `redisStore: there are more blocks and bans than the ${MOST} that a process knows: those beyond end where Redis ` +
  'loses them. Block networks, or end blocks that are not needed'

/** How many slots a cluster has. */
const SLOTS = 16_384

export class RedisStore implements Store {
  readonly lists: StoreLists | undefined
  readonly clock: (() => number) | undefined
  /** The identities that are blocked or banned. */
  readonly blocks: StoreBlocks
  readonly #held: HeldBlocks
  readonly #blockKeys: BlockKeys
  readonly #makeLists: () => RedisLists
  /** Only once one is asked for: processes without lists read none. */
  #lists: RedisLists | undefined
  readonly #refusalSlices: RedisRefusals
  readonly #refusals: RefusalLog | undefined
  readonly noteRefusal: Store['noteRefusal']
  readonly #listeners: Listeners<StoreEvents>
  readonly #health: HealthCheck
  readonly #connection: Connection
  readonly #batches: Batches
  readonly #breaker: Breaker
  readonly #denials: DenyCache | undefined
  readonly #leases: Leases
  readonly #relaxed: Relaxed
  readonly #permits = new HeldPermits()
  readonly #permitLooks: PermitLooks
  readonly #now: () => number
  readonly #prefix: string
  readonly #timeoutMs: number
  readonly #marker: string | undefined
  /** Decisions across slots that are under way: between their two phases nothing of them is with the batches. */
  readonly #acrossSlots = new Set<Promise<StoreResult>>()
  /** Decisions on blocks that Redis is asked about: nothing of them is with what they may go on to. */
  readonly #confirming = new Set<Promise<StoreResult>>()
  /** Until this process has read the index: networks have no key that decisions could look for. */
  #starting: Promise<void> | undefined
  #closing: Promise<void> | undefined
  /** What decisions fail with from `close` on. One error for all: a stack for each would cost more than the decision. */
  #closed: SluiceError | undefined
  #closedAt = 0

  /** @internal Use `redisStore`. */
  constructor(
    connection: Connection,
    options: Omit<CheckedOptions, 'warnings'> & {
      warnings: Warnings<StoreWarning>
      listeners: Listeners<StoreEvents>
      lists: StoreLists | undefined
    },
  ) {
    this.#connection = connection
    this.#listeners = options.listeners
    this.#prefix = prefixOf(connection.keyPrefix, options.prefix)
    this.#timeoutMs = options.timeoutMs
    this.clock = options.clock
    this.lists = options.lists
    this.#marker = connection.isCluster ? undefined : blockMarker(this.#prefix)
    this.#breaker = new Breaker({
      nodeOf: connection.nodeOf,
      probe: (key) => this.#probe(key),
      whenReady: connection.whenReady,
      onStateChange: options.onStateChange,
      listeners: options.listeners,
      warn: options.warnings.emit,
    })
    this.#health = new HealthCheck({
      breaker: this.#breaker,
      pending: () => this.#batches.pending,
      probe: () => Promise.all(this.#keysOfMasters().map((key) => this.#probe(key))),
    })
    connection.onDown((error) => this.#breaker.lost(error, probeKey(this.#prefix)))
    const eviction = new EvictionWarning(options.warnings)
    const denied = new IndexWarning(options.warnings)
    const time = new StoreTime(options.clock)
    this.#now = () => time.now()
    const index = {
      connection,
      prefix: this.#prefix,
      timeoutMs: options.timeoutMs,
      clock: options.clock,
      time,
      isAway: () => !connection.isCluster && this.#breaker.causeFor(0) !== undefined,
      onFailed: (error: Error) => denied.failed(error),
    }
    this.#refusalSlices = new RedisRefusals({ ...index, now: this.#now })
    this.#refusals = refusalLog('redisStore', options.offenders, this.#refusalSlices)
    this.noteRefusal = this.#refusals?.note
    this.#blockKeys = new BlockKeys(index)
    this.#permitLooks = new PermitLooks(index)
    this.#held = new HeldBlocks({
      ...index,
      name: 'blocks',
      marker: this.#marker,
      onFull: () => options.warnings.emit('SLUICE_BLOCKS_FULL', FULL),
      keysOf: (policy, identity) => (isRange(identity) ? undefined : this.#blockKeys.of(policy, identity)),
      onRestored: (entries) => {
        warnOfRestored(options.warnings, entries, 'a block or ban', 'blocks and bans')
        // What cannot be written now, this process refuses all the same.
        this.#blockKeys.write(entries, this.#held.index).catch(() => {})
      },
      // Of a cluster, whose block keys are on other servers than their ends in the index.
      onDoubted: (ends) => {
        this.#blockKeys.write(ends, this.#held.index).catch(() => {})
      },
    })
    this.#makeLists = () =>
      new RedisLists({
        ...index,
        onRestored: (entries) => warnOfRestored(options.warnings, entries, 'an entry of a list', 'entries of lists'),
      })
    this.blocks = new RedisBlocks({
      held: this.#held,
      now: this.#now,
      block: (policy, identity, forMs, reason) => this.block(policy, identity, forMs, reason),
      unblock: (policy, identity) => this.unblock(policy, identity),
      keep: (entries) => this.#keepBlocks(entries),
      clear: () => this.#clearBlocks(),
      listeners: options.listeners,
    })
    this.#starting = this.#whenStarted(options.connectTimeoutMs).then(() => {
      this.#starting = undefined
    })
    // After the decisions that waited for the connection.
    connection.onMaster((node, info) =>
      setImmediate(() => {
        eviction.connected(node, info)
        this.#held.doubt()
        this.#lists?.doubt()
      }),
    )
    this.#batches = new Batches(connection, {
      prefix: this.#prefix,
      timeoutMs: options.timeoutMs,
      batch: options.batch,
      clock: options.clock,
      marker: this.#marker,
      waitingMarker: waitingMarker(this.#prefix),
      undeclaredKeys: options.undeclaredKeys,
      onResult: (request, result, slot, sentAt) => {
        // A refusal for those that wait holds only while they do.
        if (result.behindMs === undefined) this.#denials?.hear(request, result, sentAt)
        if (result.block) this.#hearOfBlock(request, result, result.block)
        if (request.permitId !== '') this.#hearOfPermits(request, result, slot)
      },
      knowsBlocks: () => this.#held.isWhole,
      breaker: this.#breaker,
      beforeSend: () => this.#relaxed.flush(),
    })
    this.#denials = options.denyCache ? new DenyCache(options.clock) : undefined
    this.#leases = new Leases({
      decide: (request) => this.#decideShared(request),
      isOneRun: (identities) => !connection.isCluster || isOne(this.#slots(identities)),
      clock: options.clock,
    })
    this.#relaxed = new Relaxed({
      connection,
      prefix: this.#prefix,
      timeoutMs: options.timeoutMs,
      clock: options.clock,
      marker: this.#marker,
      bringsKeysOfEveryPolicy: () => this.#batches.bringsKeysOfEveryPolicy,
      onSucceeded: (slot) => this.#breaker.succeeded(slot),
      onFailed: (slot, error, identity) => this.#breaker.failed(slot, error, probeKey(this.#prefix, identity)),
      decide: (request) => this.#decideShared(request),
      strikeAfter: (request, result) => this.#strikeAfter(request, result),
      slotOf: (identity) => (connection.isCluster ? (this.#slots([identity])[0] as number) : 0),
      causeFor: (slot) => this.#breaker.causeFor(slot),
      flushDecisions: () => this.#batches.flush(),
      nodeFor: (slot, identity) => this.#batches.nodeForUndeclared(slot, identity),
    })
  }

  /** `'unavailable'` while decisions are not asked of Redis, or in a cluster of one of its masters. */
  get state(): StoreState {
    return this.#breaker.state
  }

  /** What is leased is spent here, what is relaxed is counted here, what was refused a moment ago is refused here, and Redis is asked the rest. */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    // Refunds and releases still go out, as long as there is a connection: there are no more of them than requests were
    // admitted before.
    if (this.#closed && request.op !== REFUND && request.op !== RELEASE) throw this.#closed
    const isDecision = request.op <= CHARGE
    if (this.#starting && isDecision && request.identities.some(isAddress)) {
      return this.#starting.then(() => this.decide(request))
    }
    const held = isDecision ? this.#held.find(request) : undefined
    if (held) return this.#decideHeld(request, held)
    return this.#decideUnheld(request)
  }

  #decideUnheld(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { plan } = request
    if (plan.relaxed) return this.#relaxed.decide(request)
    return plan.cells[0]?.lease ? this.#leases.decide(request) : this.#decideShared(request)
  }

  /** An identity that is blocked as far as this process knows: Redis may know better, or have lost the block. */
  #decideHeld(request: StoreRequest, held: IndexEntry): StoreResult | Promise<StoreResult> {
    const known = this.#denials?.find(request)
    if (known?.block) return known
    const slots = this.#connection.isCluster ? this.#slots(request.identities) : [0]
    if (slots.some((slot) => this.#breaker.causeFor(slot))) return this.#refused(held, 'mirror')
    return noted(this.#confirming, this.#confirmed(request))
  }

  async #confirmed(request: StoreRequest): Promise<StoreResult> {
    const sentAt = performance.now()
    const held = await this.#stillHeld(request)
    if (!held) return this.#decideUnheld(request)
    const result = this.#refused(held.entry, held.source)
    this.#denials?.hear(request, result, sentAt)
    return result
  }

  /** What this process knows to refuse, once Redis was asked whether it still holds; by the mirror alone where that is away. */
  async #stillHeld(question: BlockQuestion): Promise<{ entry: IndexEntry; source?: 'mirror' } | undefined> {
    const confirmed = new Set<string>()
    for (let entry = this.#held.find(question); entry; entry = this.#held.find(question)) {
      const field = fieldOf(entry.policy, entry.identity)
      if (confirmed.has(field)) return { entry }
      if (!(await this.#isAsked(entry))) return { entry, source: 'mirror' }
      confirmed.add(field)
    }
    return undefined
  }

  /** Whether Redis could be asked for an entry. */
  async #isAsked(entry: IndexEntry): Promise<boolean> {
    const slot = this.#connection.isCluster ? (this.#slots([entry.identity])[0] as number) : 0
    if (this.#breaker.causeFor(slot)) return false
    try {
      await this.#held.confirm(entry)
      return true
    } catch (error) {
      this.#breaker.failed(slot, error as Error, probeKey(this.#prefix, entry.identity))
      return false
    }
  }

  #refused(held: IndexEntry, source?: 'mirror'): StoreResult {
    return { allowed: false, values: [], offset: 0, ...this.#held.report(held), ...(source && { source }) }
  }

  /** A ban that a decision has just begun. */
  #hearOfBlock({ plan, identities }: StoreRequest, { now }: StoreResult, block: BlockReport): void {
    const { ban } = plan
    if (ban && block.hasBegun) this.#held.began(ban, identities[ban.identity] as string, now, block)
  }

  #decideShared(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const known = this.#denials?.find(request)
    if (known) return known
    return request.op === REFUND || request.op === RELEASE
      ? this.#clearing(request.plan, request.identities, () => this.#askRedis(request))
      : this.#askRedis(request)
  }

  #askRedis(request: StoreRequest): Promise<StoreResult> {
    if (!this.#connection.isCluster) {
      this.#refuseIfAway(0)
      return this.#batches.decide(request, 0)
    }
    const slots = this.#slots(request.identities)
    // Before any part is charged, as all would have to be refunded.
    for (const slot of slots) this.#refuseIfAway(slot)
    if (isOne(slots)) return this.#batches.decide(request, slots[0] as number)
    const { op } = request
    if (op < REFUND && !this.#batches.looksForWaiters(request) && this.#batches.canDecideTogether(slots)) {
      return noted(
        this.#acrossSlots,
        this.#batches.decide(request, slots[0] as number, () => this.#askBySlot(request, slots)),
      )
    }
    return noted(this.#acrossSlots, this.#askBySlot(request, slots))
  }

  #askBySlot(request: StoreRequest, slots: readonly number[]): Promise<StoreResult> {
    const { strike, ...unstruck } = request
    const decideParts = () => decideAcrossSlots(unstruck, slots, (part, slot) => this.#batches.decide(part, slot))
    const decide =
      strike === undefined ? decideParts : () => decideParts().then((result) => this.#strikeAfter(request, result))
    return this.#denials ? this.#denials.hearWhole(request, decide) : decide()
  }

  /** A refusal across slots is a strike once it is one: in a second step, which may be lost and is not sent twice. */
  async #strikeAfter(request: StoreRequest, result: StoreResult): Promise<StoreResult> {
    const { ban } = request.plan
    if (!ban || result.allowed || result.block || request.op === PEEK || isImpossible(request)) return result
    try {
      const identity = request.identities[ban.identity] as string
      const strike = { weight: 1, jitterMs: request.strike as number, reason: '' }
      const { now, block } = await this.strike(ban, identity, strike)
      return block ? { now, allowed: false, values: [], offset: 0, block } : result
    } catch {
      return result
    }
  }

  /** Places are freed by slot, also those that were taken on several at once. */
  #hearOfPermits(request: StoreRequest, result: StoreResult, slot: number): void {
    const slots = this.#connection.isCluster && request.identities.length > 1 ? this.#slots(request.identities) : [slot]
    if (isOne(slots)) this.#permits.heard(request, result, slot)
    else
      for (const part of partsOfWhole(request, slots, result)) this.#permits.heard(part.request, part.result, part.slot)
  }

  /**
   * Resolves once decisions are asked of Redis, in a cluster of every master, or it is known that they cannot be: at the latest
   * `connectTimeoutMs` after the store was made. Never rejects, for a Redis that is away is no reason not to start: limiters
   * then decide by their `onUnavailable`, until it is there.
   */
  async ready(): Promise<Readiness> {
    try {
      await whenConnected(this.#connection)
      await Promise.all(this.#keysOfMasters().map((key) => this.#probe(key)))
      await this.#starting
    } catch (error) {
      return { state: 'unavailable', cause: error as Error }
    }
    const cause = this.#breaker.cause
    return cause ? { state: 'unavailable', cause } : { state: 'available', cause: undefined }
  }

  /** Resolves once the index of blocks was read, or could not be. */
  async #whenStarted(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    let isOver = () => {}
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs).unref()
      isOver = this.#connection.whenReady(
        () => {},
        () => resolve(),
      )
    })
    await Promise.race([this.#held.looked, over])
    clearTimeout(timer)
    isOver()
  }

  /** On each master a key that belongs to no identity. */
  #keysOfMasters(): string[] {
    if (!this.#connection.isCluster) return [probeKey(this.#prefix)]
    const nodes = new Set(Array.from({ length: SLOTS }, (_, slot) => this.#connection.nodeOf(slot)))
    const keys = new Map<string, string>()
    for (let n = 0; keys.size < nodes.size && n < SLOTS; n++) {
      const key = probeKey(this.#prefix, `ready=${n}`)
      keys.set(this.#connection.nodeOf(calculateSlot(key)), key)
    }
    return [...keys.values()]
  }

  /** At once, without a promise: no decision waits for a Redis that is known to be away. */
  #refuseIfAway(slot: number): void {
    const cause = this.#breaker.causeFor(slot)
    if (cause) throw cause
  }

  #probe(key: string): Promise<void> {
    return probe(this.#connection, {
      key,
      marker: this.#marker,
      timeoutMs: this.#timeoutMs,
      asksTime: this.clock === undefined,
      kinds: this.#batches.kinds,
      bans: this.#batches.bans,
    })
  }

  async reportWaiting(
    plan: Plan,
    identities: readonly string[],
    { process, cell }: Pick<WaitingTurn, 'process' | 'cell'>,
    classes: readonly WaitingClass[],
  ): Promise<void> {
    const waited = plan.cells[cell] as Cell
    const identity = identities[waited.identity] as string
    this.#refuseIfAway(this.#connection.isCluster ? (this.#slots([identity])[0] as number) : 0)
    const key = this.#start(identity) + waitingSuffix(plan.policy, waited)
    if (classes.length > 0) this.#batches.noteWaiting(plan)
    const marker = this.#connection.isCluster ? undefined : waitingMarker(this.#prefix)
    const encoded = () => encodeWaiting(key, process, plan, classes, marker)
    await run(this.#connection, this.#timeoutMs, turnsScript, encoded)
  }

  async mayHavePermits(plan: Plan, identities: readonly string[], cost: number): Promise<boolean> {
    const { isCluster } = this.#connection
    const looks = plan.cells.map((cell) => {
      if (!CELL_KINDS[cell.kernel].hasPermits) return true
      const identity = identities[cell.identity] as string
      const slot = isCluster ? (this.#slots([identity])[0] as number) : 0
      const node = isCluster ? this.#batches.nodeForUndeclared(slot, identity) : undefined
      if (this.#breaker.causeFor(slot) || (isCluster && node === undefined)) return true
      const most = Math.min(...cell.limits.map(({ capacity }) => capacity)) - cost
      return this.#permitLooks.mayBeFree(this.#start(identity) + cellSuffix(plan.policy, cell), most, node)
    })
    return (await Promise.all(looks)).every((mayBeFree) => mayBeFree)
  }

  async reset(plan: Plan, identities: readonly string[]): Promise<void> {
    this.#leases.forget(plan, identities)
    this.#relaxed.forget(plan, identities)
    await this.#clearing(plan, identities, () => {
      this.#batches.flush()
      const keys = firstOfKeys(plan.cells).map((cell) => {
        return this.#start(identities[cell.identity] as string) + cellSuffix(plan.policy, cell)
      })
      return deleteKeys(this.#connection, this.#timeoutMs, keys)
    })
    const { ban } = plan
    if (ban) await this.strike(ban, identities[ban.identity] as string, PARDON)
  }

  /** Like `block`, what it does not hear of may have happened. */
  async strike(terms: BanTerms, identity: string, strike: Strike): Promise<StrikeResult> {
    const { policy, scope } = terms
    const question = { plan: { policy, banningPolicy: scope }, identities: [identity] }
    // Networks that are blocked are known here alone.
    const held = strike.weight > 0 ? await this.#stillHeld(question) : undefined
    if (held) return this.#held.report(held.entry)
    const start = this.#start(identity)
    const blockKeys = [...new Set([policy, scope, EVERY_POLICY])].map((name) => start + blockSuffix(name))
    const keys = [start + strikesSuffix(scope), ...blockKeys]
    this.#refuseIfAway(this.#connection.isCluster ? (this.#slots([identity])[0] as number) : 0)
    if (this.#marker !== undefined) keys.push(this.#marker)
    this.#batches.flush()
    const reply = await run(this.#connection, this.#timeoutMs, strikeScript, () => ({
      keys,
      args: [
        this.clock ? String(this.clock()) : '',
        String(strike.weight),
        String(strike.jitterMs),
        strike.reason,
        String(blockKeys.length),
        ...termsText(terms),
      ],
    }))
    const result = strikeResult(reply)
    if (result.block?.hasBegun) this.#held.began(terms, identity, result.now, result.block)
    // Refusals from before the block are not repeated.
    if (result.block) await this.#changingBlock(scope, identity, async () => {})
    return result
  }

  on<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void {
    return this.#listeners.on(event, listener)
  }

  /**
   * How the store is now, for a `/ready` route: see docs/redis.md. Never rejects; asks Redis at most once a second, however often
   * it is called, and waits for `timeoutMs` at most.
   */
  async health(): Promise<StoreHealth> {
    const cause = this.#closed
    if (!cause) return this.#health.read()
    return {
      state: 'unavailable',
      since: this.#closedAt,
      roundTripMs: undefined,
      pending: this.#batches.pending,
      cause,
    }
  }

  stats(): StoreStats | undefined {
    if (this.#closed) return undefined
    const { state, since } = this.#breaker
    const { pending, sizes } = this.#batches
    return { kind: 'redis', state, since, pending, blocked: this.#held.size, batches: sizes }
  }

  /** @internal */
  lastKnown(request: StoreRequest): StoreResult | undefined {
    return request.plan.relaxed && this.#relaxed.lastKnown(request)
  }

  enforceBansOfEveryPolicy(): void {
    this.#batches.enforceBansOfEveryPolicy()
  }

  offenders(query: OffendersQuery): Promise<OffendersReport> {
    return offendersOf('redisStore', this.#refusals, query)
  }

  async forget(identity: IdentityByKind): Promise<void> {
    const text = identityText('forget', identity)
    this.#relaxed.erase(text)
    // First of all, or a process that holds a block or an entry of a list might write it again.
    for (const policy of await this.#held.namesOf(text)) {
      await this.#endBlock(policy, text, () => this.#held.erase(policy, text))
    }
    this.#lists ??= this.#makeLists()
    await this.#lists.forget(text)
    this.#batches.flush()
    await forgetKeys(this.#connection, this.#timeoutMs, this.#startOfKeys(text), '')
    this.#refusals?.forget(text)
    await forgetKeys(this.#connection, this.#timeoutMs, this.#refusalSlices.start, text)
    this.#denials?.clear()
  }

  /**
   * What Redis keeps of an identity: which counts there are, strikes, blocks and bans, and lists that it is on. Identities are
   * read as `blocks` reads them. Looks through all keys of the server, as `forget` does, and needs the same permission.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async kept(identity: IdentityByKind): Promise<KeptState> {
    const text = identityText('kept', identity)
    this.#lists ??= this.#makeLists()
    const start = this.#startOfKeys(text)
    const { counts, strikes } = namesIn(await restsOfKeys(this.#connection, this.#timeoutMs, start))
    const records = await readKeys(
      this.#connection,
      this.#timeoutMs,
      strikes.map((policy) => this.#start(text) + strikesSuffix(policy)),
    )
    return {
      identity: text,
      counts,
      strikes: strikes.flatMap((policy, i) => strikesIn(policy, records[i]) ?? []),
      blocks: await blocksFor(text, this.#now(), this.#held.all()),
      lists: await this.#lists.namesFor(text),
    }
  }

  /**
   * What a key of counts is: the cells that it holds, by the `cell` of `kept`. Undefined where its name does not say so, as that
   * of many limits that share a key is a hash.
   */
  cellsOf(cell: string): readonly NamedCell[] | undefined {
    return cellsNamed(cell)
  }

  /** What all keys of an identity begin with. */
  #startOfKeys(identity: string): string {
    return `${this.#start(identity)}}:`
  }

  list(name: string): StoreList {
    checkedListName('redisStore: list', name)
    this.#lists ??= this.#makeLists()
    if (this.#closed) this.#lists.close()
    this.#lists.start()
    return new KeptList(name, this.#lists)
  }

  async block(policy: string, identity: string, forMs: number, reason: string): Promise<void> {
    await this.#held.requireRoom([{ policy, identity }])
    this.#leases.drop(policy, identity)
    this.#relaxed.drop(identity)
    const kept = keptReason(reason)
    await this.#changingBlock(policy, identity, async () => {
      this.#batches.flush()
      await this.#blockKeys.set(policy, identity, forMs, kept)
      await this.#held.add(policy, identity, { forMs }, kept)
    })
  }

  unblock(policy: string, identity: string): Promise<void> {
    return this.#endBlock(policy, identity, () => this.#held.end(policy, identity))
  }

  async #endBlock(policy: string, identity: string, end: () => Promise<void>): Promise<void> {
    this.#leases.drop(policy, identity)
    this.#relaxed.drop(identity)
    await this.#changingBlock(policy, identity, async () => {
      this.#batches.flush()
      // First of all, or a process that knows the block might write it again.
      await end()
      await this.#blockKeys.delete(policy, identity)
    })
  }

  /** Adds what was exported. */
  async #keepBlocks(entries: readonly IndexEntry[]): Promise<number> {
    await this.#held.requireRoom(entries)
    const added = await this.#held.keep(entries)
    await this.#blockKeys.write(added, this.#held.index)
    for (const { policy, identity } of added) {
      this.#leases.drop(policy, identity)
      this.#relaxed.drop(identity)
      await this.#changingBlock(policy, identity, async () => {})
    }
    return added.length
  }

  async #clearBlocks(): Promise<void> {
    this.#batches.flush()
    for await (const places of this.#held.clear()) await this.#blockKeys.deleteAll(places)
    this.#denials?.clear()
  }

  /**
   * Returns leases, sends Redis what was counted here, waits for what is in flight, releases the permits that this process holds, and ends the store's own
   * connections and timers. Decisions that come after this call are those of an outage.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#closed = new SluiceError('STORE_UNAVAILABLE', 'redis: the store is closed')
    this.#closedAt = Date.now()
    this.#held.close()
    this.#lists?.close()
    await Promise.allSettled(this.#confirming)
    await this.#leases.close()
    await this.#relaxed.close()
    await this.#refusals?.close()
    await Promise.allSettled(this.#acrossSlots)
    await this.#batches.drain()
    await this.#freePermits()
    this.#breaker.end()
    this.#connection.close()
    this.#denials?.clear()
  }

  /** What cannot be sent to Redis lapses by itself. */
  async #freePermits(): Promise<void> {
    const held = this.#permits.takeAll().filter(({ slot }) => !this.#breaker.causeFor(slot))
    await Promise.allSettled(held.map(({ request, slot }) => this.#batches.decide(request, slot)))
  }

  #clearing<T>(plan: Plan, identities: readonly string[], clear: () => Promise<T>): Promise<T> {
    return this.#denials ? this.#denials.clearing(plan, identities, clear) : clear()
  }

  #changingBlock<T>(policy: string, identity: string, change: () => Promise<T>): Promise<T> {
    return this.#denials ? this.#denials.changingBlock(policy, identity, change) : change()
  }

  #slots(identities: readonly string[]): number[] {
    return identities.map((identity) => calculateSlot(`${this.#start(identity)}}`))
  }

  #start(identity: string): string {
    return keyStart(this.#prefix, identity)
  }
}

/** Ends that were lost go unmentioned: with blocks that still hold. */
function warnOfRestored(
  warnings: Warnings<StoreWarning>,
  entries: readonly IndexEntry[],
  one: string,
  several: string,
): void {
  const count = entries.filter(({ isEnded }) => !isEnded).length
  if (count === 0) return
  warnings.emit(
    'SLUICE_BLOCKS_RESTORED',
    `Redis had lost ${count === 1 ? one : `${count} ${several}`} that this process knew: written again. Look for ` +
      'a flush, an eviction, or a failover to a replica that lagged',
  )
}

/** Keeps a decision in a set while it is under way. */
function noted(all: Set<Promise<StoreResult>>, decision: Promise<StoreResult>): Promise<StoreResult> {
  all.add(decision)
  const over = () => all.delete(decision)
  decision.then(over, over)
  return decision
}

function isAddress(identity: string): boolean {
  return identity.startsWith('ip=')
}

function isOne(slots: readonly number[]): boolean {
  return slots.every((slot) => slot === slots[0])
}
