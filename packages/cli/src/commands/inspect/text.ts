import { durationText, hasPermits, inLine, tableOf, timeLeft, type UsedLimit } from '@sluice/core/internal'
import { blocksTable } from '../blocks/table.js'
import { type Inspected, isNothing } from './inspected.js'

/** The state that Redis stores of an identity, for people. */
export function textOf(found: Inspected): string {
  const { identity, limits, unknown, strikes, blocks, lists, overrides = [] } = found
  const parts = [
    isNothing(found) && `nothing is stored of ${inLine(identity)}\n`,
    limits.length > 0 && limitsTable(limits),
    unknown.length > 0 && `${unknownText(unknown.length)}\n`,
    blocks.length > 0 && `blocked or banned:\n${blocksTable(blocks)}`,
    strikes.length > 0 &&
      tableOf(
        ['strikes', 'rung', 'policy'],
        strikes.map(({ strikes: count, rung, policy = 'all' }) => [String(count), String(rung), policy]),
      ),
    lists.length > 0 && `on lists: ${lists.map(inLine).join(', ')}\n`,
    overrides.length > 0 &&
      tableOf(
        ['override', 'policy', 'until', 'reason'],
        overrides.map(({ index, policy, until = '–', reason = '' }) => [`overrides[${index}]`, policy, until, reason]),
      ),
  ]
  return parts.filter((part) => part !== false).join('\n')
}

function limitsTable(limits: readonly UsedLimit[]): string {
  const headings = ['policy', 'limit', 'used', 'remaining', 'as new in']
  return tableOf(
    headings,
    limits.map(({ policy, used, remaining, resetAfterMs, ...limit }) => [
      policy,
      limitText(limit),
      used === undefined ? '–' : `${used} of ${limit.capacity}`,
      remaining === undefined ? '–' : String(remaining),
      resetAfterMs === undefined ? '–' : timeLeft(resetAfterMs),
    ]),
  )
}

function limitText({ algorithm, limit, windowMs, calendar }: Omit<UsedLimit, 'policy'>): string {
  return hasPermits(algorithm)
    ? `${algorithm} ${limit}`
    : `${algorithm} ${limit} per ${calendar ?? durationText(windowMs)}`
}

function unknownText(count: number): string {
  const [keys, its] = count === 1 ? ['one key', 'its name'] : [`${count} keys`, 'their names']
  return `${keys} of limits that cannot be read from ${its}; --policies FILE shows those of a document`
}
