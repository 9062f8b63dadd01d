// Bars and lines as SVG that reads well on white and on black.
import { element, label, path, picture, TEXT } from '../../scripts/plots/svg.js'
import { figure } from './text.js'

/** Ours first; the colours differ even for readers who cannot distinguish red and green. */
const COLOURS = ['#2f81d6', '#e07b16', '#d1305b', '#7a5cc6', '#2a9d8f', '#9aa3ad']
const WIDTH = 900

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} value
 * @property {'ours' | 'peer' | 'floor'} side
 *
 * @typedef {{ name: string, points: [x: number, y: number][] }} Line
 */

/**
 * @param {string} title
 * @param {readonly Bar[]} bars
 */
export function barPlot(title, bars) {
  const [left, right, top, step] = [310, 800, 56, 26]
  const max = Math.max(...bars.map(({ value }) => value))
  const colours = { ours: COLOURS[0], peer: COLOURS[1], floor: COLOURS[5] }
  return picture(
    { title, width: WIDTH, height: top + bars.length * step + 12 },
    ...bars.flatMap(({ name, value, side }, i) => {
      const y = top + i * step
      const width = ((right - left) * value) / max
      return [
        label(left - 10, y + 13, name, { 'text-anchor': 'end', 'font-weight': side === 'ours' ? 600 : undefined }),
        element('rect', { x: left, y, width: Math.max(width, 1), height: 17, fill: colours[side] }),
        label(left + width + 8, y + 13, figure(value)),
      ]
    }),
  )
}

/**
 * A plot with both axes logarithmic, or with y from 0.
 *
 * @param {string} title
 * @param {{ x: string, logY?: boolean }} axes
 * @param {readonly Line[]} lines
 */
export function linePlot(title, { x: xName, logY = false }, lines) {
  const [left, right, top, bottom] = [80, 600, 60, 340]
  const all = lines.flatMap(({ points }) => points)
  const xs = all.map(([x]) => x)
  const ys = all.map(([, y]) => y)
  const x = scale(Math.log(Math.min(...xs)), Math.log(Math.max(...xs)), left, right)
  const yOf = logY ? Math.log : (/** @type {number} */ value) => value
  const y = scale(yOf(logY ? Math.min(...ys) : 0), yOf(Math.max(...ys)), bottom, top)
  const marks = logY
    ? powersOfTen(Math.min(...ys), Math.max(...ys))
    : [0, 0.25, 0.5, 0.75, 1].map((s) => s * Math.max(...ys))
  return picture(
    { title, width: WIDTH, height: bottom + 52 },
    ...marks.flatMap((value) => [
      element('path', {
        d: path([
          [left, y(yOf(value))],
          [right, y(yOf(value))],
        ]),
        stroke: TEXT,
        'stroke-opacity': 0.3,
      }),
      label(left - 8, y(yOf(value)) + 4, figure(value), { 'text-anchor': 'end', 'font-size': 12 }),
    ]),
    ...[...new Set(xs)].map((value) =>
      label(x(Math.log(value)), bottom + 18, value.toLocaleString('en'), { 'text-anchor': 'middle', 'font-size': 12 }),
    ),
    label((left + right) / 2, bottom + 40, xName, { 'text-anchor': 'middle' }),
    ...lines.flatMap(({ name, points }, i) => {
      const colour = COLOURS[i % COLOURS.length]
      const placed = points.map(([px, py]) => /** @type {[number, number]} */ ([x(Math.log(px)), y(yOf(py))]))
      return [
        element('path', { d: path(placed), stroke: colour, 'stroke-width': 2, fill: 'none' }),
        ...placed.map(([cx, cy]) => element('circle', { cx, cy, r: 3.5, fill: colour })),
        element('rect', { x: right + 24, y: top + i * 22 - 11, width: 12, height: 12, fill: colour }),
        label(right + 42, top + i * 22, name),
      ]
    }),
  )
}

/**
 * @param {number} from
 * @param {number} to
 * @param {number} start
 * @param {number} end
 */
function scale(from, to, start, end) {
  return (/** @type {number} */ value) => start + ((end - start) * (value - from)) / (to - from || 1)
}

/**
 * @param {number} min
 * @param {number} max
 */
function powersOfTen(min, max) {
  const marks = []
  for (let mark = 10 ** Math.ceil(Math.log10(min)); mark <= max; mark *= 10) marks.push(mark)
  return marks
}
