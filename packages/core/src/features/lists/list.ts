import { isKeyValue } from '../../policy/key.js'
import { isKind, type KeyValue } from '../../store/identity.js'
import type { List, ListKeys } from '../../store/list.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { ipRange, RANGE_FORMS } from '../../util/ip-range.js'
import { isRecord } from '../../util/is-record.js'
import { FixedList } from './data-matcher.js'
import { ListBuilder } from './list-data.js'
import { standardValue } from './standard-value.js'

/**
 * Values by their kind, as they are before they are normalised or hashed. Each value of a composed kind, such as `user+route`,
 * is an array of values.
 */
export type ListedValues = Readonly<Record<string, readonly (KeyValue | readonly KeyValue[])[]>>

/** The default of `byIp()`. */
const STANDARD_KEYS: ListKeys = {
  valueOf: (kind, raw) => (Array.isArray(raw) ? undefined : standardValue(kind, String(raw))),
  ipv6Prefix: 64,
}

/**
 * Identities by their kind, each value as it is given to `block` and `reset`: not hashed. An IPv6 address without a prefix is
 * the client that it belongs to, so its /64 unless `byIp` says otherwise; ranges are as in `ipRanges`.
 *
 * @example list({ ip: ['192.0.2.7'], user: ['ann'], 'header:x-api-key': ['k-4f1c'] })
 * @throws SluiceError `INVALID_POLICY`, which names the entry
 */
export function list(values: ListedValues): List {
  if (!isRecord(values)) {
    invalidPolicy('list', 'values', 'an object such as { ip: ["192.0.2.7"] }', values)
  }
  for (const [kind, all] of Object.entries(values)) {
    if (!isKind(kind)) invalidPolicy('list', 'values', 'kinds of identities as names, such as "ip"', kind)
    if (!Array.isArray(all)) invalidPolicy('list', kind, 'an array of values', all)
    const parts = kind.split('+').length
    all.forEach((value: unknown, i) => {
      const isListed =
        parts === 1 ? isKeyValue(value) : Array.isArray(value) && value.length === parts && value.every(isKeyValue)
      const expected = parts === 1 ? 'a non-empty string or a number' : `an array of ${parts} values`
      if (!isListed) invalidPolicy('list', `${kind}[${i}]`, expected, value)
      if (kind === 'ip' && !ipRange(String(value).trim())) invalidPolicy('list', `ip[${i}]`, RANGE_FORMS, value)
    })
  }
  const copy = Object.fromEntries(Object.entries(values).map(([kind, all]) => [kind, [...all]]))
  return Object.assign(build(copy, STANDARD_KEYS), { forKeys: (keys: ListKeys) => build(copy, keys) })
}

function build(values: ListedValues, keys: ListKeys): FixedList {
  const builder = new ListBuilder()
  for (const [kind, all] of Object.entries(values)) {
    all.forEach((value, i) => {
      if (kind === 'ip') {
        const range = ipRange(String(value).trim(), keys.ipv6Prefix)
        if (range) builder.addRange(range)
        return
      }
      const counted = countedValue(keys, kind, value, i)
      if (counted !== undefined) builder.addText(kind, counted)
    })
  }
  return new FixedList('list', builder.build())
}

function countedValue(
  keys: ListKeys,
  kind: string,
  value: KeyValue | readonly KeyValue[],
  i: number,
): string | undefined {
  try {
    return keys.valueOf(kind, value)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw new SluiceError('INVALID_POLICY', `list: ${kind}[${i}]: ${error.message}`, { cause: error })
  }
}
