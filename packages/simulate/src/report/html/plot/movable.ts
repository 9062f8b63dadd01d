import { grouped } from '@sluice/core/internal'
import type { LimitStep } from '../../../proposal/proposal.js'
import { type Markup, markup } from '../markup.js'
import { down, plot, pointsOf } from './plot.js'
import { logScale } from './scales.js'

/** Limits that the reader may choose among, at most: `style.ts` has a rule for each. */
export const MAX_STEPS = 13

export interface Movable {
  /** Unique in the page. */
  readonly id: string
  readonly title: string
  /** Of what the limit is: `requests per minute`. */
  readonly unit: string
  readonly limit: number
  readonly rank: readonly { readonly rank: number; readonly units: number }[]
  readonly steps: readonly LimitStep[]
  /** The clients whom a limit refuses, as a sentence. */
  readonly effectOf: (step: LimitStep) => string
}

/**
 * The worst window of each client, the busiest first, with the line of a limit that the reader moves by choosing another one. The
 * page has no script: each limit has its line and its sentence, and the style shows those of the chosen one.
 */
export function movablePlot({ id, title, unit, limit, rank, steps, effectOf }: Movable): Markup {
  const [first, last] = [rank[0], rank.at(-1)]
  if (!first || !last) return markup``
  const limits = steps.map((step) => step.limit)
  const x = logScale(1, last.rank)
  const y = logScale(Math.max(1, Math.min(last.units, ...limits)), 1.5 * Math.max(first.units, ...limits))
  const points = pointsOf(rank.map(({ rank, units }) => [x.at(rank), y.at(units)]))
  return markup`<fieldset class="movable"><legend>Move the limit, in ${unit}</legend>
${steps.map(
  (
    step,
    i,
  ) => markup`<input type="radio" name="${id}-step" id="${id}-step-${i}" class="step-${i}"${step.limit === limit ? markup` checked` : ''}><label for="${id}-step-${i}">${grouped(step.limit)}</label>
`,
)}${steps.map(
  (step, i) => markup`<p class="at at-${i}">${effectOf(step)}</p>
`,
)}${plot(
  {
    id,
    title,
    description: `The busiest has ${grouped(first.units)} in its worst window. The sentences above have the effect of each limit.`,
    x,
    y,
    xName: 'rank of the client (logarithmic)',
    yName: `${unit} (logarithmic)`,
    legend: [
      ['clients', 'the busiest first'],
      ['limit', 'the limit'],
    ],
  },
  markup`<polyline class="clients line" points="${points}"/>`,
  steps.map(
    (step, i) =>
      markup`<g class="at at-${i}"><line class="limit line" x1="0" x2="100%" y1="${down(y, step.limit)}" y2="${down(y, step.limit)}"/><text class="mark end" x="100%" y="${down(y, step.limit)}" dx="-4" dy="-6">limit ${grouped(step.limit)}</text></g>`,
  ),
)}</fieldset>
`
}
