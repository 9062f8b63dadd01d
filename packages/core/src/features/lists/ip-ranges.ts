import type { List } from '../../store/list.js'
import { invalidPolicy } from '../../util/errors.js'
import { ipRange, RANGE_FORMS } from '../../util/ip-range.js'
import { FixedList } from './data-matcher.js'
import { ListBuilder } from './list-data.js'

/**
 * Ranges of addresses, of IPv4 and IPv6, which may overlap: `192.0.2.0/24`, `192.0.2.0-192.0.2.9`, `2001:db8::/32`, or one
 * address. IPv4-mapped IPv6 addresses (`::ffff:192.0.2.0/120`) and those of the well-known NAT64 prefix count as IPv4. An
 * IPv6 address without a prefix is that one address. Among the ranges that hold an address, the smallest counts.
 *
 * @example rateLimit({ limit: 100, window: '1m', deny: ipRanges(['192.0.2.0/24']), allow: ipRanges(['192.0.2.7']) })
 * @throws SluiceError `INVALID_POLICY`, which names the entry
 */
export function ipRanges(ranges: readonly string[]): List {
  if (!Array.isArray(ranges)) invalidPolicy('ipRanges', 'ranges', 'an array of ranges', ranges)
  const builder = new ListBuilder()
  ranges.forEach((text: unknown, i) => {
    const range = typeof text === 'string' ? ipRange(text.trim()) : undefined
    builder.addRange(range ?? invalidPolicy('ipRanges', `ranges[${i}]`, RANGE_FORMS, text))
  })
  return new FixedList('ipRanges', builder.build())
}
