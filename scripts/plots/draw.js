// One picture per kind of traffic, one row per algorithm.
import { EXCESS, element, label, path, picture, TEXT } from './svg.js'
import { inWindow, LIMIT, maxInWindow } from './traffic.js'

// Colours that differ on white and on black, also for people who do not distinguish red and green.
const ADMITTED = '#2f81d6'
const REFUSED = '#e07b16'

const WIDTH = 900
const LEFT = 222
const RIGHT = 724
const TOP = 96
const ROW = 102
const CHART = 48
const STRIP = 26
/** Units for the height of a row's chart. */
const TALLEST = 21
const BIN_MS = 250

/**
 * @param {{ title: string, lengthMs: number }} scenario
 * @param {readonly { name: string, note: string, decisions: import('./traffic.js').Decision[] }[]} rows
 */
export function draw({ title, lengthMs }, rows) {
  const height = TOP + rows.length * ROW + 34
  const x = (/** @type {number} */ ms) => LEFT + ((RIGHT - LEFT) * Math.min(ms, lengthMs)) / lengthMs
  const tallestBin = Math.max(...rows.flatMap(({ decisions }) => bins(decisions).map(({ all }) => all)))
  return picture(
    {
      title,
      label: `${title}: what each algorithm admits with a limit of ${LIMIT} per 10 s`,
      width: WIDTH,
      height,
    },
    ...legend(),
    ...rows.flatMap((row, i) => drawRow(row, TOP + i * ROW, x, lengthMs, tallestBin)),
    ...axis(TOP + rows.length * ROW + 6, x, lengthMs),
  )
}

function legend() {
  const y = 52
  return [
    label(16, y, `Limit: ${LIMIT} per 10 s.`),
    element('rect', { x: 142, y: y - 11, width: 12, height: 12, fill: ADMITTED }),
    label(160, y, 'admitted'),
    element('rect', { x: 228, y: y - 11, width: 12, height: 12, fill: REFUSED }),
    label(246, y, 'refused'),
    element('path', {
      d: path([
        [306, y - 5],
        [330, y - 5],
      ]),
      stroke: ADMITTED,
      'stroke-width': 2,
      fill: 'none',
    }),
    label(336, y, 'let go in the last 10 s'),
    element('rect', { x: 490, y: y - 11, width: 12, height: 12, fill: EXCESS }),
    label(508, y, 'more than the limit'),
    label(RIGHT + 16, y + 22, 'admitted', { 'font-size': 12 }),
    label(RIGHT + 84, y + 22, 'most in 10 s', { 'font-size': 12 }),
  ]
}

/**
 * @param {{ name: string, note: string, decisions: import('./traffic.js').Decision[] }} row
 * @param {number} top
 * @param {(ms: number) => number} x
 * @param {number} lengthMs
 * @param {number} tallestBin
 */
function drawRow({ name, note, decisions }, top, x, lengthMs, tallestBin) {
  const bottom = top + CHART
  const y = (/** @type {number} */ units) => bottom - (units / TALLEST) * CHART
  const steps = inWindow(decisions)
  const admitted = decisions.filter(({ allowed }) => allowed).length
  const most = maxInWindow(decisions)

  const line = stepLine(steps, x, y, lengthMs)
  /** @returns {[number, number]} */
  const above = (/** @type {[number, number]} */ [x, height]) => [x, Math.min(height, y(LIMIT))]
  return [
    label(16, top + 26, name, { 'font-weight': 600 }),
    label(16, top + 44, note, { 'font-size': 12 }),
    element('path', {
      d: `${path([[x(0), y(0)], ...line, [x(lengthMs), y(0)]])}Z`,
      fill: ADMITTED,
      'fill-opacity': 0.22,
    }),
    element('path', { d: `${path([...line.map(above), [x(lengthMs), y(LIMIT)]])}Z`, fill: EXCESS }),
    element('path', {
      d: path([
        [x(0), y(LIMIT)],
        [x(lengthMs), y(LIMIT)],
      ]),
      stroke: TEXT,
      'stroke-dasharray': '4 4',
    }),
    label(LEFT - 6, y(LIMIT) + 4, String(LIMIT), { 'text-anchor': 'end', 'font-size': 11 }),
    element('path', { d: path(line), stroke: ADMITTED, 'stroke-width': 2, fill: 'none', 'stroke-linejoin': 'round' }),
    ...strip(decisions, bottom + 4 + STRIP, x, tallestBin),
    label(RIGHT + 16, top + 34, `${admitted} of ${decisions.length}`, { 'font-weight': 600 }),
    label(RIGHT + 84, top + 34, String(most), { 'font-weight': 600, fill: most > LIMIT ? EXCESS : undefined }),
  ]
}

/**
 * @param {readonly { atMs: number, count: number }[]} steps
 * @param {(ms: number) => number} x
 * @param {(units: number) => number} y
 * @param {number} lengthMs
 */
function stepLine(steps, x, y, lengthMs) {
  /** @type {[number, number][]} */
  const line = [[x(0), y(0)]]
  let height = y(0)
  for (const { atMs, count } of steps) {
    if (atMs > lengthMs) break
    line.push([x(atMs), height])
    height = y(count)
    line.push([x(atMs), height])
  }
  line.push([x(lengthMs), height])
  return line
}

/**
 * Requests by their time of arrival, on a common scale.
 *
 * @param {readonly import('./traffic.js').Decision[]} decisions
 * @param {number} bottom
 * @param {(ms: number) => number} x
 * @param {number} tallestBin
 */
function strip(decisions, bottom, x, tallestBin) {
  const width = 5
  let admittedBars = ''
  let refusedBars = ''
  for (const { atMs, all, admitted } of bins(decisions)) {
    const [left, right] = [x(atMs) - width / 2, x(atMs) + width / 2]
    const [low, middle, high] = [0, admitted, all].map((n) => bottom - (STRIP * n) / tallestBin)
    if (admitted > 0) admittedBars += bar(left, right, Number(low), Number(middle))
    if (all > admitted) refusedBars += bar(left, right, Number(middle), Number(high))
  }
  return [
    element('path', {
      d: path([
        [LEFT, bottom],
        [RIGHT, bottom],
      ]),
      stroke: TEXT,
      'stroke-opacity': 0.5,
    }),
    ...(admittedBars ? [element('path', { d: admittedBars, fill: ADMITTED })] : []),
    ...(refusedBars ? [element('path', { d: refusedBars, fill: REFUSED })] : []),
  ]
}

/**
 * @param {number} left
 * @param {number} right
 * @param {number} low
 * @param {number} high
 */
const bar = (left, right, low, high) =>
  `${path([
    [left, low],
    [left, high],
    [right, high],
    [right, low],
  ])}Z`

/** @param {readonly import('./traffic.js').Decision[]} decisions */
function bins(decisions) {
  /** @type {Map<number, { atMs: number, all: number, admitted: number }>} */
  const found = new Map()
  for (const { atMs, allowed } of decisions) {
    const start = Math.floor(atMs / BIN_MS) * BIN_MS
    const bin = found.get(start) ?? { atMs, all: 0, admitted: 0 }
    bin.all++
    if (allowed) bin.admitted++
    found.set(start, bin)
  }
  return [...found.values()]
}

/**
 * @param {number} y
 * @param {(ms: number) => number} x
 * @param {number} lengthMs
 */
function axis(y, x, lengthMs) {
  const marks = []
  for (let ms = 0; ms <= lengthMs; ms += 5000) {
    marks.push(
      element('path', {
        d: path([
          [x(ms), TOP - 6],
          [x(ms), y],
        ]),
        stroke: TEXT,
        'stroke-opacity': ms % 10_000 === 0 ? 0.45 : 0.15,
      }),
    )
    marks.push(label(x(ms), y + 18, `${ms / 1000} s`, { 'text-anchor': 'middle', 'font-size': 12 }))
  }
  return marks
}
