import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { rate, shortTime } from './format.js'

interface Curve {
  readonly name: string
  /** A colour of the style sheet: `--curve-1`. */
  readonly colour: string
  readonly values: readonly (number | null)[]
  readonly isFilled?: boolean
}

interface ChartProps {
  readonly name: string
  /** Ms since 1970, ascending. */
  readonly at: readonly number[]
  readonly curves: readonly Curve[]
  /** Instants with a line of their own, such as changes. */
  readonly marks?: readonly number[]
  readonly height?: number
  /** Called with the part that the mouse marks, in ms since 1970. Without it, none can be marked. */
  zoom?: ((from: number, to: number) => void) | undefined
}

/** The least span that a curve has, in seconds: the first figures are one point. */
const LEAST_SPAN_S = 60
/** Half the width of the longest time of the axis, in CSS pixels: the last one stands below the end. */
const HALF_LABEL = 30
const DARK = matchMedia('(prefers-color-scheme: dark)')

/** Curves over time. A text says the latest values to those who do not see it. */
export function Chart({ name, at, curves, marks = [], height = 220, zoom }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const marksNow = useRef(marks)
  marksNow.current = marks
  const [isDark, setDark] = useState(DARK.matches)
  const [shown, setShown] = useState<number | null>(null)
  const shape = curves.map((curve) => curve.name).join()

  useEffect(() => {
    const change = () => setDark(DARK.matches)
    DARK.addEventListener('change', change)
    return () => DARK.removeEventListener('change', change)
  }, [])

  // Colours are read again with each scheme.
  useEffect(() => {
    const element = place.current
    if (!element) return
    const size = () => ({ width: Math.max(element.clientWidth, 200), height })
    const options = optionsOf(curves, getComputedStyle(element), size(), marksNow, setShown, zoom)
    const made = new uPlot(options, dataOf(at, curves), element)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize(size()))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [shape, isDark, height, zoom])

  useEffect(() => plot.current?.setData(dataOf(at, curves)), [at, curves])

  const index = shown !== null && shown < at.length ? shown : lastKnown(at, curves)
  const time = at[index]
  const valueAt = (curve: Curve) => {
    const value = curve.values[index]
    return typeof value === 'number' ? rate(value) : '–'
  }
  const summary = `${name}. Latest: ${curves.map((curve) => `${curve.name} ${valueAt(curve)}`).join(', ')}.`
  return (
    <figure class="chart">
      <figcaption>
        {curves.map((curve) => (
          <span key={curve.name} class="key">
            <i class={curve.colour.slice(2)} /> {curve.name} <b>{valueAt(curve)}</b>
          </span>
        ))}
        <span class="muted">{time !== undefined && shortTime(time)}</span>
      </figcaption>
      <div ref={place} role="img" aria-label={summary} />
    </figure>
  )
}

/** The last instant with a value: a step that is not over has none. */
function lastKnown(at: readonly number[], curves: readonly Curve[]): number {
  for (let i = at.length - 1; i > 0; i--) {
    if (curves.some(({ values }) => typeof values[i] === 'number')) return i
  }
  return at.length - 1
}

function dataOf(at: readonly number[], curves: readonly Curve[]): uPlot.AlignedData {
  return [at.map((ms) => ms / 1000), ...curves.map(({ values }) => [...values])] as uPlot.AlignedData
}

function optionsOf(
  curves: readonly Curve[],
  style: CSSStyleDeclaration,
  size: { width: number; height: number },
  marks: { readonly current: readonly number[] },
  show: (index: number | null) => void,
  zoom: ChartProps['zoom'],
): uPlot.Options {
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis: uPlot.Axis = {
    stroke: colour('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    ...size,
    legend: { show: false },
    cursor: { y: false, drag: { x: zoom !== undefined, y: false, setScale: false }, points: { size: 7 } },
    padding: [8, HALF_LABEL, 0, 0],
    scales: {
      x: { range: (plot, min, max) => spanOf(plot.data[0] ?? [], [min, max]) },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      { ...axis, space: 80, size: 30, grid: { show: false }, values: TIMES },
      { ...axis, size: 46, values: (_plot, values) => values.map((value) => (value === null ? '' : rate(value))) },
    ],
    series: [
      {},
      ...curves.map((curve) => ({
        stroke: colour(curve.colour),
        width: 1.75,
        points: { show: true, size: 5, filter: (plot: uPlot, i: number) => aloneIn(plot.data[i] ?? []) },
        ...(curve.isFilled && { fill: `${colour(curve.colour)}22` }),
      })),
    ],
    hooks: {
      setCursor: [(plot) => show(plot.cursor.idx ?? null)],
      setSelect: [(plot) => marked(plot, zoom)],
      draw: [(plot) => drawMarks(plot, marks.current, colour('--accent'))],
    },
  }
}

/** Pixels: what is narrower was a click. */
const LEAST_MARKED = 6

function marked(plot: uPlot, zoom: ChartProps['zoom']): void {
  const { left, width } = plot.select
  if (!zoom || width < LEAST_MARKED) return
  const at = (pixel: number) => plot.posToVal(pixel, 'x') * 1000
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  zoom(at(left), at(left + width))
}

/** Of one point, uPlot would show a day. */
function spanOf(times: ArrayLike<number>, [min, max]: [number, number]): [number, number] {
  const last = times.length === 1 ? (times[0] as number) : max
  return [Math.min(min, last - LEAST_SPAN_S), last]
}

/** Values between two gaps, which no line shows. */
function aloneIn(values: ArrayLike<number | null | undefined>): number[] {
  const isGap = (i: number) => values[i] === null || values[i] === undefined
  return [...Array(values.length).keys()].filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1))
}

const two = (value: number) => String(value).padStart(2, '0')

/** Hours and minutes; seconds where they differ; the day where one begins. */
function TIMES(_plot: uPlot, splits: number[]): string[] {
  const step = (splits[1] ?? 60) - (splits[0] ?? 0)
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000)
    if (step >= 86_400) return shortTime(seconds * 1000).split(',', 1)[0] as string
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`
    return step < 60 ? `${minutes}:${two(at.getSeconds())}` : minutes
  })
}

function drawMarks(plot: uPlot, marks: readonly number[], colour: string): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = devicePixelRatio
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio])
  for (const at of marks) {
    const x = Math.round(plot.valToPos(at / 1000, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}
