import { isRange } from '../blocks/blocked-ranges.js'
import { bringAll } from '../kinds/all.js'
import type { ResultObserver } from '../redis/batching/batch-runs.js'
import { Batches } from '../redis/batching/batches.js'
import { KnownWaiters } from '../redis/batching/known-waiters.js'
import { Outbox } from '../redis/batching/outbox.js'
import { PlanTexts, UsedFeatures } from '../redis/batching/plan-texts.js'
import { BlockKeys } from '../redis/blocks/block-keys.js'
import { MAX_BLOCKS } from '../redis/blocks/mirror.js'
import { MirroredBlocks } from '../redis/blocks/mirrored-blocks.js'
import { StoreTime } from '../redis/blocks/store-time.js'
import { Changes } from '../redis/changes/changes.js'
import { Strikes } from '../redis/changes/strikes.js'
import { connect, type RedisClient } from '../redis/clients/connect.js'
import type { Connection } from '../redis/clients/connection.js'
import { lacksFailoverDetector } from '../redis/clients/ioredis.js'
import { Breaker } from '../redis/health/breaker.js'
import { probe, probeKey } from '../redis/health/probing.js'
import { StoreReadiness } from '../redis/health/readiness.js'
import { DenyCache } from '../redis/layers/deny-cache.js'
import { KnownBlocks } from '../redis/layers/known-blocks.js'
import type { Layer } from '../redis/layers/layer.js'
import { Slots } from '../redis/layers/slots.js'
import { checkedOptions, type RedisStoreOptions } from '../redis/options.js'
import { PermitLooks } from '../redis/permits/permit-looks.js'
import { blockMarker, prefixOf } from '../redis/scripts/keys.js'
import { CrossSlots } from '../redis/slots/cross-slots.js'
import { KeySlots } from '../redis/slots/key-slots.js'
import { RedisWarnings } from '../redis/warnings/redis-warnings.js'
import { STORE_EVENTS, type StoreEvents } from '../store/events.js'
import { Listeners } from '../util/listeners.js'
import { isPropertyOf } from '../util/property-of.js'
import { STORE_WARNINGS, Warnings } from '../util/warnings.js'
import { KeptBlocks } from './bans/kept-blocks.js'
import { RedisBlocks } from './bans/redis-blocks.js'
import { RedisCharges } from './charges/redis-charges.js'
import { Leases } from './leases/leases.js'
import { storeLists } from './lists/given-lists.js'
import { RedisLists } from './lists/redis-lists.js'
import { RedisRefusals } from './offenders/redis-refusals.js'
import { refusalLog } from './offenders/refusal-log.js'
import { ChangeLog } from './records/change-log.js'
import { RecentRefusals } from './records/recent-refusals.js'
import { RedisChanges } from './records/redis-changes.js'
import { RedisFigures } from './records/redis-figures.js'
import { RedisKeyedScripts } from './records/redis-keyed-scripts.js'
import { RedisNotes } from './records/redis-notes.js'
import { RedisRecentRefusals } from './records/redis-recent-refusals.js'
import { Relaxed } from './relaxed/relaxed.js'

type StoreOptions = ReturnType<typeof optionsOf>

/** Makes the parts of a store and connects them. */
export function assemble(client: RedisClient, given: RedisStoreOptions) {
  const options = optionsOf(given)
  // Records of charges have cells of any process.
  bringAll()
  const connection = connect(client, options.timeoutMs, options.connectTimeoutMs)
  const base = withBlocks(baseOf(connection, options))
  const { mirrored, keys, outbox } = base
  // Filled below: layers are notified of changes by other parts.
  const layers: Layer[] = []
  const changes = new Changes(layers, outbox)
  const strikes = new Strikes({ ...base, changes })
  const { known, relaxed, batches, waiters } = addLayers(layers, base, strikes, options)
  const redisBlocks = new RedisBlocks(mirrored, keys, changes, base.now)
  const lists = new RedisLists({
    ...base,
    keysOf: undefined,
    onUnconfirmed: undefined,
    onRestored: (entries) => base.warnings.restored(entries, 'an entry of a list', 'entries of lists'),
  })
  const refusalSlices = new RedisRefusals(base)
  const refusals = refusalLog('redisStore', options.offenders, refusalSlices)
  const sharedRefusals = new RedisRecentRefusals(base)
  watchMasters(client, base, [mirrored, lists])
  return {
    ...base,
    listeners: options.listeners,
    layers: layers as readonly Layer[],
    firstLayer: known,
    relaxed,
    changes,
    strikes,
    charges: new RedisCharges(base),
    batches,
    waiters,
    redisBlocks,
    blocks: new KeptBlocks(redisBlocks, options.listeners),
    lists,
    ownLists: options.lists,
    refusals,
    refusalSlices,
    figures: new RedisFigures(base),
    keyedScripts: new RedisKeyedScripts(base),
    recentRefusals: new RecentRefusals(sharedRefusals),
    notes: new RedisNotes(base, sharedRefusals),
    changeLog: new ChangeLog(new RedisChanges(base), options.listeners),
    permitLooks: new PermitLooks(base),
    readiness: new StoreReadiness({ ...base, pending: () => batches.pending, started: () => known.starting }),
  }
}

function optionsOf(given: RedisStoreOptions) {
  const checked = checkedOptions(given)
  const lists = storeLists('redisStore', given)
  const listeners = new Listeners<StoreEvents>('redisStore', STORE_EVENTS)
  const warnings = new Warnings('redisStore', STORE_WARNINGS, given.warnings, listeners)
  return { ...checked, lists, listeners, warnings }
}

/**
 * Adds the layers in the order in which they may decide, ending with the one that sends decisions to Redis. That is the
 * order of `layers.push` below. They are constructed from last to first, as each takes the next.
 */
function addLayers(layers: Layer[], base: ReturnType<typeof withBlocks>, strikes: Strikes, options: StoreOptions) {
  const strikeAfter = strikes.after.bind(strikes)
  const waiters = new KnownWaiters(base)
  const observers: ResultObserver[] = []
  const batches = new Batches({ ...base, waiters, batch: options.batch, observers })
  const slots = new Slots({ ...base, waiters, strikeAfter }, batches)
  const denyCache = options.denyCache ? new DenyCache(base, slots) : undefined
  const leases = new Leases(base, denyCache ?? slots)
  const relaxed = new Relaxed({ ...base, strikeAfter }, leases)
  const known = new KnownBlocks(
    { ...base, connectTimeoutMs: options.connectTimeoutMs, remembers: options.denyCache },
    relaxed,
  )
  layers.push(known, relaxed, leases, ...(denyCache ? [denyCache] : []), slots, batches)
  observers.push(...layers.filter((layer): layer is Layer & ResultObserver => isPropertyOf(layer, 'onResult')))
  return { known, relaxed, batches, waiters }
}

/** Makes the state that all parts share. */
function baseOf(connection: Connection, options: StoreOptions) {
  const { timeoutMs, clock } = options
  const prefix = prefixOf(connection.keyPrefix, options.prefix)
  const marker = connection.isCluster ? undefined : blockMarker(prefix)
  const time = new StoreTime(clock)
  const used = new UsedFeatures()
  const server = { connection, prefix, timeoutMs, clock, marker, used }
  const breaker = new Breaker({
    nodeOf: connection.nodeOf,
    probe: (key) => probe(server, key),
    whenReady: connection.whenReady,
    onStateChange: options.onStateChange,
    listeners: options.listeners,
    warn: options.warnings.emit,
  })
  connection.onDown((error) => breaker.lost(error, probeKey(prefix)))
  const warnings = new RedisWarnings(options.warnings)
  return {
    ...server,
    time,
    now: () => time.now(),
    breaker,
    slots: new KeySlots(connection, prefix, breaker),
    crossSlots:
      connection.isCluster && options.undeclaredKeys ? new CrossSlots(connection, prefix, timeoutMs) : undefined,
    outbox: new Outbox(),
    isAway: () => !connection.isCluster && breaker.causeFor(0) !== undefined,
    warnings,
    onFailed: (error: Error) => warnings.indexFailed(error),
  }
}

/** Adds the blocks and bans that this process knows, and the texts of plans, which depend on them. */
function withBlocks(base: ReturnType<typeof baseOf>) {
  const keys = new BlockKeys(base)
  const mirrored = new MirroredBlocks({
    ...base,
    name: 'blocks',
    onFull: () => base.warnings.blocksFull(MAX_BLOCKS),
    keysOf: (policy, identity) => (isRange(identity) ? undefined : keys.of(policy, identity)),
    onRestored: (entries) => {
      base.warnings.restored(entries, 'a block or ban', 'blocks and bans')
      // If the write fails, this process still enforces the blocks.
      keys.write(entries, mirrored.index).catch(() => {})
    },
    // For clusters, where block keys and their ends in the index are on different servers.
    onUnconfirmed: (ends) => {
      keys.write(ends, mirrored.index).catch(() => {})
    },
  })
  const texts = new PlanTexts({ ...base, blocks: mirrored })
  return { ...base, mirrored, keys, texts }
}

/** Checks each newly connected master. It may be a different one that evicts keys or has lost blocks. */
function watchMasters(
  client: RedisClient,
  { connection, warnings }: ReturnType<typeof baseOf>,
  mirrored: readonly Pick<MirroredBlocks | RedisLists, 'suspect'>[],
): void {
  // Decisions that waited for the connection go first.
  connection.onMaster((node, info) =>
    setImmediate(() => {
      warnings.connected(node, info)
      if (lacksFailoverDetector(client)) warnings.noFailoverDetector(client)
      for (const copy of mirrored) copy.suspect()
    }),
  )
}
