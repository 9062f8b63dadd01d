import { percent } from '@sluice/core/internal'
import type { Timeline } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { spanText, timeText } from '../words.js'
import { along, down, plot, pointsOf } from './plot.js'
import { linearScale, timeScale } from './scales.js'

/** Requests over time: admitted ones, refused ones above them, and the number of each peak. */
export function timelinePlot({ stepMs, fromMs, admitted, refused, peaks }: Timeline): Markup {
  const all = admitted.map((count, i) => count + (refused[i] ?? 0))
  const highest = all.reduce((max, count) => Math.max(max, count), 0)
  const toMs = fromMs + all.length * stepMs
  const [x, y] = [timeScale(fromMs, toMs), linearScale(highest)]
  const area = (counts: readonly number[]) =>
    pointsOf([
      [0, 0],
      ...counts.flatMap((count, i): [number, number][] => [
        [i / counts.length, y.at(count)],
        [(i + 1) / counts.length, y.at(count)],
      ]),
      [1, 0],
    ])
  const [first] = peaks
  const total = sum(all)
  const description =
    `Requests from ${timeText(fromMs)} to ${timeText(toMs)} UTC, in steps of ${spanText(stepMs)}. ` +
    `${percent(total === 0 ? 0 : sum(refused) / total)} are refused.${first ? ` The highest peak is at ${timeText(first.atMs)}.` : ''} A table of the peaks follows.`
  return plot(
    {
      id: 'timeline-plot',
      title: 'Requests over time',
      description,
      x,
      y,
      xName: 'time (UTC)',
      yName: `requests in ${spanText(stepMs)}`,
      legend: [
        ['admitted', 'admitted'],
        ['refused', 'refused'],
      ],
    },
    // The admitted ones hide the lower part of all.
    markup`<polygon class="refused" points="${area(all)}"/><polygon class="admitted" points="${area(admitted)}"/>`,
    peaks.map(({ atMs, requests }, i) => {
      const at = atMs + stepMs / 2
      return markup`<text class="mark middle" x="${along(x, at)}" y="${down(y, requests)}" dy="-4">${i + 1}</text>`
    }),
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}
