import { grouped } from '@sluice/core/internal'
import type { LimitReport } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { down, plot, pointsOf } from './plot.js'
import { logScale } from './scales.js'

/** The worst window of each client, the busiest first, both axes logarithmic, with the line of the limit. */
export function rankPlot(id: string, { limit, unit, rank = [] }: LimitReport): Markup {
  const [first, last] = [rank[0], rank.at(-1)]
  if (!first || !last) return markup``
  const x = logScale(1, last.rank)
  // With room for the name of the limit above its line.
  const y = logScale(Math.max(1, Math.min(last.units, limit)), 1.5 * Math.max(first.units, limit))
  const points = pointsOf(rank.map(({ rank, units }) => [x.at(rank), y.at(units)]))
  const times = first.units / limit
  return plot(
    {
      id,
      title: 'Worst window of each client',
      description: `The busiest client has ${grouped(first.units)} ${unit} in its worst window, ${times >= 2 ? `${grouped(Math.round(times))} times the limit` : `with a limit`} of ${grouped(limit)}. A table of some ranks follows.`,
      x,
      y,
      xName: 'rank of the client',
      yName: `${unit} in its worst window`,
      legend: [
        ['clients', 'clients, the busiest first'],
        ['limit', `limit of ${grouped(limit)}`],
      ],
    },
    markup`<polyline class="clients line" points="${points}"/>`,
    markup`<line class="limit line" x1="0" x2="100%" y1="${down(y, limit)}" y2="${down(y, limit)}"/><text class="mark end" x="100%" y="${down(y, limit)}" dx="-4" dy="-6">limit ${grouped(limit)}</text>`,
  )
}

/** Some points of the curve, a few of each power of ten. */
export function ranksToName(rank: NonNullable<LimitReport['rank']>): NonNullable<LimitReport['rank']> {
  const wanted = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6, 1e7]
  const found = wanted.map((least) => rank.find(({ rank }) => rank >= least))
  return [...new Set([...found, rank.at(-1)])].filter((point) => point !== undefined)
}
