import { counted, durationText, grouped, percent } from '@sluice/core/internal'
import type { LimitReport, PolicyReport, TradeOff } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { rankPlot, ranksToName } from '../plot/rank.js'
import { suggestion, tradeOffPlot } from '../plot/trade-off.js'
import { figures, table } from '../table.js'
import { intervalText, rangeText, spanText } from '../words.js'
import { clientsEntries, countsEntries } from './overview.js'

/**
 * One policy with its limits.
 *
 * @param whose clients the headroom is of: `good clients`
 */
export function policySection(policy: PolicyReport, i: number, whose: string): Markup {
  const { name, mode, requests, clients, limits, bans, waits } = policy
  const id = `policy-${i + 1}`
  return markup`<section aria-labelledby="${id}"><h2 id="${id}">Policy ${name}</h2>
${mode === 'report' ? markup`<p>The policy is in report mode: it refuses no request, and the figures are those of its enforcement.</p>` : ''}
${figures([
  ...countsEntries(requests),
  ...clientsEntries(clients),
  ...(bans ? [['Bans begun', bansText(bans)] as const] : []),
  ...(waits ? [['Waits', waitsText(waits)] as const] : []),
])}${limits.map((limit, j) => limitSection(limit, { id: `${id}-${j + 1}`, policy: name, whose }))}</section>
`
}

function bansText({ begun, longestMs }: NonNullable<PolicyReport['bans']>): string {
  return begun === 0 ? 'none' : `${grouped(begun)}, the longest of ${spanText(longestMs)}`
}

function waitsText({ count, p50, p99, max }: NonNullable<PolicyReport['waits']>): string {
  if (count === 0) return 'none'
  return `${grouped(count)}; half up to ${spanText(p50)}, 99 % up to ${spanText(p99)}, longest ${spanText(max)}`
}

/** A limit as a part of the page. */
interface Place {
  /** Unique in the page. */
  readonly id: string
  readonly policy: string
  readonly whose: string
}

function limitSection(limit: LimitReport, place: Place): Markup {
  const { name, algorithm, unit, windowMs, calendar, rank, tradeOff } = limit
  const window = calendar === undefined ? durationText(windowMs) : `a ${calendar}`
  const isPlotted = rank !== undefined || tradeOff !== undefined
  return markup`<h3>Limit ${name}</h3>
<p>${grouped(limit.limit)} ${unit} in ${window}, ${algorithm}. It had no room in ${intervalText(limit.refused)} refusals. ${headroomText(limit, place)}</p>
${isPlotted ? '' : markup`<p>Worst windows and other limits were not computed: <code>--curve</code> adds both.</p>`}
${rank && rank.length > 0 ? rankFigure(place, limit, rank) : ''}${tradeOff && tradeOff.candidates.length > 0 ? tradeOffFigure(place, limit, tradeOff) : ''}`
}

function headroomText({ headroom, headroomBounds }: LimitReport, { whose }: Place): string {
  if (headroom === undefined) return ''
  const bounds = headroomBounds ?? { min: headroom, max: headroom }
  const times = rangeText(bounds, (number) => grouped(Number(number.toPrecision(2))))
  return `Headroom: the limit is ${times} times the 99.9th percentile of the worst windows of ${whose}.`
}

function rankFigure({ id, policy }: Place, limit: LimitReport, rank: NonNullable<LimitReport['rank']>): Markup {
  return markup`${rankPlot(`${id}-rank`, limit)}<details><summary>Worst windows as a table</summary>
${table(
  `${id}-ranks`,
  `Worst windows of some clients, ${policy} ${limit.name}`,
  [
    { heading: 'Rank', cell: ({ rank }) => grouped(rank), isNumber: true },
    { heading: limit.unit, cell: ({ units }) => grouped(units), isNumber: true },
  ],
  ranksToName(rank),
)}</details>
`
}

const ESTIMATED = 'The shares are estimates, by clients that the lowest candidate refuses, and by'

function tradeOffFigure({ id, policy }: Place, { name, limit }: LimitReport, tradeOff: TradeOff): Markup {
  const { candidates, suggested, sample } = tradeOff
  const marks = (candidate: number) =>
    [...(candidate === limit ? ['limit'] : []), ...(candidate === suggested ? ['suggested'] : [])].join(', ')
  return markup`${tradeOffPlot(`${id}-trade-off`, limit, tradeOff)}<p>${suggestion(suggested)} ${sample < 1 ? `${ESTIMATED} ${percent(sample)} of the others, chosen by hash.` : ''}</p>
<details><summary>${counted(candidates.length, 'candidate')} as a table</summary>
${table(
  `${id}-candidates`,
  `Shares refused by each candidate, ${policy} ${name}`,
  [
    { heading: 'Limit', cell: (candidate) => grouped(candidate.limit), isNumber: true },
    { heading: 'Requests refused', cell: ({ requestsRefused }) => percent(requestsRefused), isNumber: true },
    { heading: 'Clients ever refused', cell: ({ clientsRefused }) => percent(clientsRefused), isNumber: true },
    { heading: 'Mark', cell: (candidate) => marks(candidate.limit) },
  ],
  candidates,
)}</details>
`
}
