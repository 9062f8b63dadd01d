import { type BlockEntry, createLimiter, type IdentityByKind, ipRanges, type KeptState, type Store } from '@sluice/core'
import { identityIn, identityText, isKind, listedValue, ownFieldsOf, textValue } from '@sluice/core/internal'
import { BANS, LISTS } from '@sluice/core/store'
import type { CheckedOptions } from '../options.js'
import { Problem } from '../problem.js'
import type { Schema } from '../schema.js'
import type { GivenIdentity } from './given.js'
import type { LimitsForIdentity } from './policies.js'

export type { GivenIdentity } from './given.js'

export const IDENTITY: Schema = {
  type: 'object',
  description: 'An identity by its kind and raw value; a composed kind, such as ip+route, takes an array of values.',
  required: ['kind', 'value'],
  properties: {
    kind: { type: 'string', minLength: 1, maxLength: 256 },
    value: {
      oneOf: [
        { type: 'string', minLength: 1, maxLength: 4096 },
        { type: 'array', maxItems: 16, items: { type: 'string', minLength: 1, maxLength: 4096 } },
      ],
    },
    counted: {
      type: 'boolean',
      description: 'Whether the value is as responses have it: as it is counted, such as the hash of a header.',
    },
  },
  additionalProperties: false,
}

/** @throws Problem */
export function byKind(given: GivenIdentity): IdentityByKind {
  const { kind, value, counted } = ownFieldsOf(given)
  if (!isKind(kind)) throw new Problem(400, 'identity.kind: expected a kind such as ip or user')
  return counted ? { kind, value } : { [kind]: value as string }
}

/** The identity as it is counted: normalised, and hashed where it is secret or long. */
export function counted(identity: IdentityByKind): { readonly kind: string; readonly value: string } {
  return textValue(identityText('identity', identity))
}

/** The same as one text. */
export function textOf(identity: IdentityByKind): string {
  return identityText('identity', identity)
}

/** The limiter that counts the limits of a document for one identity. */
export function limiterFor(store: Store, name: string, { limits, consistency }: LimitsForIdentity) {
  return createLimiter<unknown>({ name, store, limits, ...(consistency && { consistency }) })
}

export type Parts = Pick<CheckedOptions<never>, 'store' | 'limiters' | 'documents'>

/** The names of the limiters, and of the policies of documents. */
export function namesOf({ limiters, documents }: Pick<Parts, 'limiters' | 'documents'>): string[] {
  // A policy of a document bans by its own name, and its tiers by the same.
  const ofDocuments = documents.flatMap(({ name, policies }) => [
    name,
    ...[...policies.byName.keys()].map((each) => each.split('.', 1)[0] as string),
  ])
  return [...new Set([...limiters.map(({ name }) => name), ...ofDocuments])]
}

/**
 * The blocks and bans of this client alone: from every policy, and from each limiter given.
 *
 * @param groups the client as limits count it that group addresses in another way, such as 2001:db8::/56
 */
export async function blocksOf(
  parts: Parts,
  identity: IdentityByKind,
  groups: readonly string[] = [],
): Promise<BlockEntry[]> {
  const blocks = parts.store[BANS]?.blocks
  if (!blocks) return []
  const own = counted(identity).value
  const all = [identity, ...groups.filter((each) => each !== own).map((ip) => ({ ip }))]
  const found = await Promise.all(
    all.flatMap((each) => [blocks.get(each), ...namesOf(parts).map((policy) => blocks.get(each, { policy }))]),
  )
  return found.filter((entry) => entry !== undefined)
}

/** An address, or the first one of a network. Undefined for another identity. */
function addressOf(identity: IdentityByKind): string | undefined {
  const [kind, value] = isCountedForm(identity) ? [identity.kind, identity.value] : (Object.entries(identity)[0] ?? [])
  return kind === 'ip'
    ? String(value)
        .trim()
        .replace(/^\[|\]$/g, '')
        .split('/', 1)[0]
    : undefined
}

function isCountedForm(identity: IdentityByKind): identity is { readonly kind: string; readonly value: string } {
  return Object.hasOwn(identity, 'kind') && Object.hasOwn(identity, 'value')
}

/** Pages of blocks that are searched for networks, of 1,000 each. */
const MAX_PAGES = 20

/** The blocks of networks that contain an address, beside those of the client alone. */
export async function networksOf({ store }: Parts, identity: IdentityByKind, own: readonly BlockEntry[]) {
  const blocks = store[BANS]?.blocks
  const address = addressOf(identity)
  const found: BlockEntry[] = []
  if (!blocks || address === undefined) return found
  const isOwn = ({ value, policy }: BlockEntry) => own.some((each) => each.value === value && each.policy === policy)
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { entries, ...rest } = await blocks.list({ kind: 'ip', max: 1000, ...(cursor !== undefined && { cursor }) })
    const networks = entries.filter((entry) => entry.value.includes('/') && !isOwn(entry))
    found.push(...networks.filter(({ value }) => ipRanges([value]).match({ kind: 'ip', value: address })))
    cursor = rest.cursor
    if (cursor === undefined) break
  }
  return found
}

/** The lists that an identity is on, by itself or within a range. */
export async function listsOf(
  { store, lists }: Pick<CheckedOptions<never>, 'store' | 'lists'>,
  identity: IdentityByKind,
) {
  const { kind } = counted(identity)
  if (kind.includes('+')) return []
  const value = listedValue(identity)
  const { [LISTS]: kept } = store
  const named = lists.flatMap((name) => kept?.list?.(name) ?? [])
  const own = [...(kept?.given?.allow ?? []), ...(kept?.given?.deny ?? [])].filter((item) => typeof item === 'object')
  const names = new Set<string>()
  for (const list of [...own, ...named]) {
    await list.ready().catch(() => {})
    if (list.match({ kind, value })) names.add(list.name)
  }
  return [...names]
}

interface Searchable {
  kept(identity: IdentityByKind): Promise<KeptState>
}

/** A store whose keys can be searched. @throws Problem */
export function searchable(store: Store): Searchable {
  if (typeof (store as Partial<Searchable>).kept === 'function') return store as unknown as Searchable
  throw new Problem(501, 'search: this store cannot search its keys; it shows the limiters that the console was given')
}

/** Whether an identity is the address of the operator, a network that contains it, or one of these beside other values. */
export function containsAddress(identity: IdentityByKind, ip: string | undefined): boolean {
  const { kind, value } = identityIn(textOf(identity))
  const address = [value].flat()[kind.split('+').indexOf('ip')]
  if (address === undefined || ip === undefined) return false
  return ipRanges([address]).match({ kind: 'ip', value: ip }) !== undefined
}
