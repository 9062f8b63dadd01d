import { grouped, percent } from '@sluice/core/internal'
import type { TradeOff } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { along, besideText, down, plot, pointsOf } from './plot.js'
import { logScale, type Scale } from './scales.js'

/** The share of clients below which a limit is suggested. */
const TOLERATED = 0.001

/** For each candidate: the share of requests refused, and of clients ever refused. Shares are logarithmic above 0, which is the bottom. */
export function tradeOffPlot(id: string, limit: number, { candidates, suggested }: TradeOff): Markup {
  const limits = [limit, ...candidates.map((candidate) => candidate.limit)].map((value) => Math.max(1, value))
  const x = logScale(Math.min(...limits), Math.max(...limits))
  const y = shares(candidates.flatMap(({ requestsRefused, clientsRefused }) => [requestsRefused, clientsRefused]))
  const [requests, clients] = (['requestsRefused', 'clientsRefused'] as const).map((field) =>
    candidates.map((candidate) => ({ limit: candidate.limit, share: candidate[field] })),
  ) as [Share[], Share[]]
  const line = (points: readonly Share[]) => pointsOf(points.map(({ limit, share }) => [x.at(limit), y.at(share)]))
  return plot(
    {
      id,
      title: 'Shares that other limits refuse',
      description: `Both shares fall as the limit rises, from ${grouped(Math.min(...limits))} to ${grouped(Math.max(...limits))}. ${suggestion(suggested)} A table of all candidates follows.`,
      x,
      y,
      xName: 'limit',
      yName: 'share refused',
      legend: [
        ['requests', 'requests refused (circles)'],
        ['clients', 'clients ever refused (squares)'],
      ],
    },
    markup`<polyline class="requests line" points="${line(requests)}"/><polyline class="clients line" points="${line(clients)}"/>`,
    [
      vertical(x, 'limit', limit, 16, `limit ${grouped(limit)}`),
      suggested === undefined ? undefined : vertical(x, 'suggested', suggested, 34, `suggested ${grouped(suggested)}`),
      requests.map(
        (point) =>
          markup`<circle class="requests" cx="${along(x, point.limit)}" cy="${down(y, point.share)}" r="3.5"/>`,
      ),
      clients.map(
        (point) =>
          markup`<rect class="clients" x="${along(x, point.limit)}" y="${down(y, point.share)}" width="7" height="7" transform="translate(-3.5 -3.5)"/>`,
      ),
    ],
  )
}

/** The sentence about the lowest limit that refuses next to nobody. */
export function suggestion(suggested: number | undefined): string {
  const few = `fewer than ${percent(TOLERATED)} of the clients`
  return suggested === undefined
    ? `No candidate refuses ${few}.`
    : `The lowest candidate that refuses ${few} is ${grouped(suggested)}.`
}

interface Share {
  readonly limit: number
  readonly share: number
}

/** From a power of ten below all shares to 1. What is 0 stands below that, at the bottom. */
function shares(all: readonly number[]): Scale {
  const least = all.reduce((min, share) => (share > 0 ? Math.min(min, share) : min), TOLERATED)
  const low = 10 ** Math.max(-6, Math.floor(Math.log10(least) - 0.001))
  const scale = logScale(low, 1, (share) => `${Number((share * 100).toPrecision(2))} %`)
  // A tenth of the height lies between 0 and the least share.
  return {
    at: (share) => (share > 0 ? 0.1 + 0.9 * scale.at(share) : 0),
    ticks: [{ value: 0, text: '0 %' }, ...scale.ticks],
  }
}

function vertical(x: Scale, kind: string, value: number, y: number, text: string): Markup {
  return markup`<line class="${kind} line" x1="${along(x, value)}" x2="${along(x, value)}" y1="0" y2="100%"/>${besideText(x, value, y, text)}`
}
