import { CLIENT_BITS, checkedReason, identityText } from '../../blocks/given-blocks.js'
import { FOREVER, MAX_LISTED, type NamedEntry } from '../../blocks/named-lists.js'
import type { StoreListEntry } from '../../store/entries.js'
import { type IdentityByKind, textValue, valueStart } from '../../store/identity.js'
import type { ListEntryOptions } from '../../store/store-list.js'
import { invalidKey, invalidPolicy, SluiceError } from '../../util/errors.js'
import { ipRange, RANGE_FORMS, rangeText } from '../../util/ip-range.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'

const NAME = /^[A-Za-z0-9_.:-]{1,64}$/

/** @throws SluiceError `INVALID_POLICY` */
export function checkedListName(where: string, name: unknown): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  return invalidPolicy(where, 'name', '1 to 64 letters, digits, and any of "_.:-"', name)
}

/**
 * The text of an identity in a store's lists.
 *
 * @throws SluiceError `INVALID_KEY`
 */
export function listedText(where: string, identity: IdentityByKind): string {
  const text = identityText(where, identity, rangeOf)
  if (!textValue(text).kind.includes('+')) return text
  return invalidKey(where, 'an identity of a kind that is not composed', identity)
}

function rangeOf(where: string, text: string): string {
  const range = ipRange(text.trim(), CLIENT_BITS)
  return range ? rangeText(range) : invalidKey(`${where}: ip`, RANGE_FORMS, text)
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedDetails(
  where: string,
  options: ListEntryOptions = {},
  now: number,
): Pick<NamedEntry, 'reason' | 'until'> {
  knownOptions(where, options, ['reason', 'expiresAt'])
  const { expiresAt } = options
  const reason = checkedReason(where, options.reason)
  if (expiresAt === undefined) return { reason, until: FOREVER }
  const until = wholeNumber(where, 'expiresAt', expiresAt instanceof Date ? expiresAt.getTime() : expiresAt, 0)
  if (until <= now || until > FOREVER) invalidPolicy(where, 'expiresAt', `an instant in the future`, expiresAt)
  return { reason, until }
}

/**
 * Validates an entry that was saved earlier.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkedNamedEntry(entry: NamedEntry): NamedEntry {
  const where = 'list'
  knownOptions(where, entry, ['list', 'identity', 'reason', 'since', 'until'])
  const { list, identity, reason, since, until } = entry
  checkedListName(where, list)
  if (typeof identity !== 'string' || valueStart(identity) === 0)
    invalidPolicy(where, 'identity', 'an identity such as "ip=192.0.2.7"', identity)
  checkedReason(where, reason)
  wholeNumber(where, 'since', since, 0)
  wholeNumber(where, 'until', until, 0, FOREVER)
  return entry
}

/** @throws SluiceError `STORE_FULL` */
export function checkRoom(where: string, size: number): void {
  if (size < MAX_LISTED) return
  throw new SluiceError(
    'STORE_FULL',
    `${where}: the lists of this store have ${MAX_LISTED} entries: keep long ones in files`,
  )
}

/** The entry as users see it. */
export function listEntry({ identity, reason, since, until }: Omit<NamedEntry, 'list'>): StoreListEntry {
  return { ...textValue(identity), reason, since, ...(until !== FOREVER && { expiresAt: until }) }
}
