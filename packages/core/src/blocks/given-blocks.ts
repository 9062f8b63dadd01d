import type { AddBlockOptions, BlockQuery, BlockScope } from '../store/blocks.js'
import type { BlockEntry } from '../store/entries.js'
import {
  countedValue,
  type Identity,
  type IdentityByKind,
  isCounted,
  isHash,
  isKind,
  joined,
  LONGEST_VALUE,
  startOf,
  textValue,
} from '../store/identity.js'
import { EVERY_POLICY, MAX_RUNGS } from '../store/store.js'
import { secretValue } from '../util/credentials.js'
import { spanOrForEver } from '../util/duration.js'
import { invalidKey, invalidPolicy } from '../util/errors.js'
import { hashOf } from '../util/hash.js'
import { bare } from '../util/ip-address.js'
import { ipRange, rangeText } from '../util/ip-range.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { FOREVER } from './named-lists.js'

/** The policy and identity of a block, as stores name them. */
export interface BlockPlace {
  readonly policy: string
  /** As text, `kind=value`. */
  readonly identity: string
}

/** @throws SluiceError `INVALID_KEY`, `INVALID_POLICY` */
export function placeOf(where: string, identity: IdentityByKind, { policy }: BlockScope): BlockPlace {
  return { policy: checkedPolicy(where, policy), identity: identityText(where, identity) }
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedScope(where: string, scope: BlockScope = {}): BlockScope {
  knownOptions(where, scope, ['policy'])
  return scope
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedAdd(
  where: string,
  options: AddBlockOptions,
): { readonly forMs: number; readonly reason: string } {
  knownOptions(where, options, ['policy', 'for', 'reason'])
  return { forMs: spanOrForEver(where, 'for', options.for), reason: checkedReason(where, options.reason) }
}

/** A validated request for a page. */
export interface CheckedQuery<Entry> {
  readonly where: string
  readonly cursor: string | undefined
  readonly max: number
  readonly matches: (entry: Entry) => boolean
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedQuery(query: BlockQuery = {}): CheckedQuery<BlockEntry> {
  knownOptions('blocks.list', query, ['policy', 'kind', 'prefix', 'cursor', 'max'])
  const { policy, ...rest } = query
  if (policy !== undefined) checkedPolicy('blocks.list', policy)
  const { matches, ...page } = checkedPage('blocks.list', rest)
  const isOf = (entry: BlockEntry) => policy === undefined || entry.policy === undefined || entry.policy === policy
  return { ...page, matches: (entry) => matches(entry) && isOf(entry) }
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedPage(
  where: string,
  query: Omit<BlockQuery, 'policy'> = {},
): CheckedQuery<Pick<BlockEntry, 'kind' | 'value'>> {
  knownOptions(where, query, ['kind', 'prefix', 'cursor', 'max'])
  const { kind, prefix = '', cursor, max = 100 } = query
  if (kind !== undefined && !isKind(kind)) invalidPolicy(where, 'kind', 'a kind such as "ip"', kind)
  if (typeof prefix !== 'string') invalidPolicy(where, 'prefix', 'a string', prefix)
  if (cursor !== undefined && typeof cursor !== 'string')
    invalidPolicy(where, 'cursor', 'the cursor of the page before', cursor)
  wholeNumber(where, 'max', max, 1, MAX_PAGE)
  return {
    where,
    cursor,
    max,
    matches: (entry) => (kind === undefined || entry.kind === kind) && entry.value.startsWith(prefix),
  }
}

const MAX_PAGE = 1000
const LONGEST_REASON = 200

/**
 * Validates an imported entry.
 *
 * @throws SluiceError `INVALID_POLICY`, which names the field
 */
export function checkedEntry(index: number, entry: BlockEntry): BlockEntry {
  const where = `blocks.import: [${index}]`
  knownOptions(where, entry, ['policy', 'kind', 'value', 'reason', 'since', 'until', 'times', 'ban'])
  const { policy, kind, value, reason, since, until, times, ban } = entry
  if (policy !== undefined) checkedPolicy(where, policy)
  if (!isKind(kind)) invalidPolicy(where, 'kind', 'a kind such as "ip"', kind)
  if (typeof value !== 'string' || value === '' || value.length > LONGEST_VALUE) {
    invalidPolicy(where, 'value', `a string of 1 to ${LONGEST_VALUE} characters`, value)
  }
  checkedReason(where, reason)
  wholeNumber(where, 'since', since, 0)
  wholeNumber(where, 'until', until, 0, FOREVER)
  wholeNumber(where, 'times', times, 1)
  if (ban !== undefined) {
    knownOptions(`${where}: ban`, ban, ['rung', 'strikes', 'forgetAfterMs'])
    const { rung, strikes, forgetAfterMs } = ban
    wholeNumber(`${where}: ban`, 'rung', rung, 1, MAX_RUNGS)
    wholeNumber(`${where}: ban`, 'strikes', strikes, 1)
    if (forgetAfterMs !== undefined) wholeNumber(`${where}: ban`, 'forgetAfterMs', forgetAfterMs, 1, FOREVER)
  }
  return entry
}

/** Leading bits of an IPv6 address without a prefix, as `byIp()` groups them. */
export const CLIENT_BITS = 64

/** @throws SluiceError `INVALID_POLICY` */
function checkedPolicy(where: string, policy: unknown = EVERY_POLICY): string {
  if (typeof policy === 'string' && policy !== '') return policy
  return invalidPolicy(where, 'policy', 'the name of a policy', policy)
}

export function checkedReason(where: string, reason: unknown = ''): string {
  if (typeof reason === 'string' && reason.length <= LONGEST_REASON) return reason
  return invalidPolicy(where, 'reason', `a string of up to ${LONGEST_REASON} characters`, reason)
}

/**
 * The text of an identity by kind, as stores have it and as keys without options count it.
 *
 * @throws SluiceError `INVALID_KEY`
 */
export function identityText(where: string, identity: IdentityByKind, addressOf = clientOf): string {
  if (isCounted(identity) && identity.kind !== 'ip') return countedText(where, identity)
  const byKind = isCounted(identity) ? { ip: identity.value } : identity
  const [[kind, raw] = ['', undefined], ...others] = Object.entries(byKind ?? {})
  if (others.length > 0 || !isKind(kind)) {
    return invalidKey(where, "an identity such as { ip: '192.0.2.7' }", identity)
  }
  const kinds = kind.split('+')
  const values = kinds.length === 1 ? [raw] : raw
  if (!Array.isArray(values) || values.length !== kinds.length) {
    return invalidKey(`${where}: ${kind}`, `an array of ${kinds.length} values`, raw)
  }
  const counted = kinds.map((each, i) => givenValue(where, each, values[i], addressOf))
  return startOf(kind) + bounded(kinds.length === 1 ? (counted[0] as string) : joined(counted))
}

function countedText(where: string, identity: Identity): string {
  const { kind } = identity
  if (!isKind(kind)) return invalidKey(where, "an identity such as { ip: '192.0.2.7' }", identity)
  const value = countedValue(identity)
  return value === undefined
    ? invalidKey(`${where}: ${kind}`, 'a value as it is counted', identity.value)
    : startOf(kind) + value
}

/**
 * The value by which lists are asked for an identity that is given by hand. Of an address, itself: its group may be wider than a
 * range of a list. Of a network, its first address.
 */
export function listedValue(identity: IdentityByKind): string {
  const { kind, value } = textValue(identityText('identity', identity))
  if (kind !== 'ip') return value
  const identityValue = isCounted(identity) ? identity.value : identity.ip
  return String(identityValue).trim().split('/', 1)[0] as string
}

function givenValue(where: string, kind: string, raw: unknown, addressOf: typeof clientOf): string {
  const text = typeof raw === 'string' || typeof raw === 'bigint' || Number.isFinite(raw) ? String(raw) : ''
  if (text === '') return invalidKey(`${where}: ${kind}`, 'a non-empty string or a number', raw)
  if (kind === 'ip') return addressOf(where, text)
  return secretValue(kind, text) ?? text
}

/** The client that an address belongs to, as `byIp()` counts it; or a network. */
function clientOf(where: string, text: string): string {
  const trimmed = text.trim()
  const range = trimmed.includes('-') ? undefined : ipRange(bare(trimmed), CLIENT_BITS)
  return range ? rangeText(range) : invalidKey(`${where}: ip`, 'an address or a network', text)
}

function bounded(value: string): string {
  return value.length > LONGEST_VALUE || isHash(value) ? hashOf(value) : value
}
