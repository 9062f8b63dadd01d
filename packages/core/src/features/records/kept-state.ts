import { BlockedRanges } from '../../blocks/blocked-ranges.js'
import { identityText } from '../../blocks/given-blocks.js'
import type { Outbox } from '../../redis/batching/outbox.js'
import { blockEntry, type IndexEntry } from '../../redis/blocks/entry.js'
import type { MirroredBlocks } from '../../redis/blocks/mirrored-blocks.js'
import type { Changes } from '../../redis/changes/changes.js'
import { CHARGES, keyStart, strikesSuffix, WAITING } from '../../redis/scripts/keys.js'
import { ReplyReader } from '../../redis/scripts/reply-reader.js'
import { readKeys } from '../../redis/scripts/run.js'
import { forgetKeys, restsOfKeys } from '../../redis/scripts/walk-keys.js'
import type { RedisBase } from '../../redis/slots/base.js'
import type { BlockEntry } from '../../store/entries.js'
import type { IdentityByKind } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import type { RedisBlocks } from '../bans/redis-blocks.js'
import type { RedisLists } from '../lists/redis-lists.js'
import type { RedisRefusals } from '../offenders/redis-refusals.js'
import type { RefusalLog } from '../offenders/refusal-log.js'
import type { ChangeLog } from './change-log.js'
import type { RecentRefusals } from './recent-refusals.js'
import type { RedisNotes } from './redis-notes.js'

/** The data of an identity in Redis. Plain data, as JSON holds it. */
export interface KeptState {
  /** The identity as it is counted: its kind, `=` and its value, as in `identities` of a `StoreRequest`. */
  readonly identity: string
  /** Its counts: the name of a policy, and the `id` of a cell, or the `joint` of cells that share a key. */
  readonly counts: readonly { readonly policy: string; readonly cell: string }[]
  /** Its strikes, including old ones that do not count but are still stored. */
  readonly strikes: readonly KeptStrikes[]
  /** Its blocks and bans, and those of networks that contain it. */
  readonly blocks: readonly BlockEntry[]
  /** The store's lists that contain it, by itself or within a range. */
  readonly lists: readonly string[]
}

/** Strikes of an identity, by the policy that bans for them. */
export interface KeptStrikes {
  /** The policy that bans for these strikes; absent if the ban applies to the whole store. */
  readonly policy?: string
  /** Number of strikes. */
  readonly strikes: number
  /** The rung of the last ban; 0 if there was none. */
  readonly rung: number
}

interface IdentityParts extends RedisBase {
  readonly now: () => number
  readonly outbox: Outbox
  readonly changes: Changes
  readonly mirrored: MirroredBlocks
  readonly redisBlocks: RedisBlocks
  readonly lists: RedisLists
  readonly refusals: RefusalLog | undefined
  readonly refusalSlices: RedisRefusals
  readonly recentRefusals: RecentRefusals
  readonly notes: RedisNotes
  readonly changeLog: ChangeLog
}

/** Erases the data of an identity in Redis. Scans all keys of the server. */
export async function forget(state: IdentityParts, given: IdentityByKind): Promise<void> {
  const { connection, timeoutMs, outbox, changes, redisBlocks, lists, refusals, refusalSlices, ...rest } = state
  const { recentRefusals, notes, changeLog } = rest
  const identity = identityText('forget', given)
  await changes.make({ kind: 'forget', identity }, async () => {
    // Blocks and lists come first, or a process that knows an entry might write it again.
    await redisBlocks.erase(identity)
    await lists.forget(identity)
    outbox.flush()
    await forgetKeys(connection, timeoutMs, startOfKeys(state, identity), '')
    refusals?.forget(identity)
    await forgetKeys(connection, timeoutMs, refusalSlices.start, identity)
    await recentRefusals.forget(identity)
    await notes.forget(identity)
    await changeLog.erase(identity)
  })
}

/** Reads the data of an identity in Redis. Scans all keys of the server. */
export async function kept(state: IdentityParts, given: IdentityByKind): Promise<KeptState> {
  const { connection, prefix, timeoutMs, now, mirrored, lists } = state
  const identity = identityText('kept', given)
  const { counts, strikes } = namesIn(await restsOfKeys(connection, timeoutMs, startOfKeys(state, identity)))
  const keys = strikes.map((policy) => keyStart(prefix, identity) + strikesSuffix(policy))
  const records = await readKeys(connection, timeoutMs, keys)
  return {
    identity,
    counts,
    strikes: strikes.flatMap((policy, i) => strikesIn(policy, records[i]) ?? []),
    blocks: await blocksFor(identity, now(), mirrored.all()),
    lists: await lists.namesFor(given),
  }
}

/** The start of all keys of an identity. */
function startOfKeys({ prefix }: RedisBase, identity: string): string {
  return `${keyStart(prefix, identity)}}:`
}

/** The counts and strikes in the names of an identity's keys. `rests`: the names without their common start. */
function namesIn(rests: readonly string[]): { counts: KeptState['counts']; strikes: readonly string[] } {
  const counts: { policy: string; cell: string }[] = []
  const strikes: string[] = []
  // SCAN may find a key twice.
  for (const rest of [...new Set(rests)].sort()) {
    // A policy's name contains no colon.
    const end = rest.indexOf(':')
    const [policy, cell] = [rest.slice(0, end), rest.slice(end + 1)]
    if (end < 0 || cell === 'block' || `:${cell}` === CHARGES || cell.endsWith(WAITING)) continue
    if (cell === 'strikes') strikes.push(policy)
    else counts.push({ policy, cell })
  }
  return { counts, strikes: strikes.sort() }
}

/** Reads a record of strikes, as `lua/strikes.lua` writes it; undefined if the value is not one. */
function strikesIn(policy: string, record: unknown): KeptStrikes | undefined {
  if (!(record instanceof Uint8Array) || record.length < 7 || (record.length - 7) % 8 !== 0) return undefined
  const reader = new ReplyReader(record)
  const rung = reader.uint8()
  // The instant from which the time to forget the rung runs.
  reader.uint48()
  let strikes = 0
  for (let at = 7; at < record.length; at += 8) {
    reader.uint48()
    strikes += reader.uint16()
  }
  return { ...(policy !== EVERY_POLICY && { policy }), strikes, rung }
}

/** The blocks that refuse an identity: its own, and those of networks that contain it. */
async function blocksFor(identity: string, now: number, entries: AsyncIterable<IndexEntry>): Promise<BlockEntry[]> {
  const found: IndexEntry[] = []
  const networks = new BlockedRanges<IndexEntry>()
  for await (const entry of entries) {
    if (entry.until <= now) continue
    // One tree for all entries: a network is in it only while it is compared.
    networks.set(entry.policy, entry.identity, entry)
    if (entry.identity === identity || networks.find([entry.policy], identity).length > 0) found.push(entry)
    networks.delete(entry.policy, entry.identity)
  }
  return found.map(blockEntry)
}
