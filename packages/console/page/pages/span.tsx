import { goWith, type Query } from '../router.js'

const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Hours are kept for as long, minutes for a week. */
export const KEPT_MS = 90 * DAY_MS
export const MINUTES_KEPT_MS = 7 * DAY_MS
/** Minutes of one answer. */
const MOST_MINUTES_MS = 1500 * MINUTE_MS
const SHORTEST_MS = 10 * MINUTE_MS
/** What ends as little before now ends at the present: addresses have whole minutes. */
const PRESENT_MS = 2 * MINUTE_MS

/** Spans that end now, by their names in the address. */
export const RANGES = [
  { name: 'Live', span: undefined, ms: 0 },
  { name: '1 hour', span: '1h', ms: HOUR_MS },
  { name: '24 hours', span: '24h', ms: DAY_MS },
  { name: '7 days', span: '7d', ms: 7 * DAY_MS },
  { name: '30 days', span: '30d', ms: 30 * DAY_MS },
  { name: '90 days', span: '90d', ms: KEPT_MS },
] as const

/** A span of the past, and the steps in which it is shown. */
export interface Span {
  readonly step: 'minute' | 'hour'
  /** Its length. */
  readonly ms: number
  /** Its end, in ms since 1970. @default now */
  readonly to?: number | undefined
}

/** The span of an address: `span=7d`, or an instant each in `from` and `to`. Undefined is live. */
export function spanOf({ span, from = '', to = '' }: Query): Span | undefined {
  const now = Date.now()
  const [first, last] = [Date.parse(from), Date.parse(to)]
  if (first < last) return stepped(last - first, last, now)
  const range = RANGES.find((each) => each.span !== undefined && each.span === span)
  return range && stepped(range.ms, undefined, now)
}

/** In minutes, where these are kept. A week is easier to read in hours. */
function stepped(ms: number, to: number | undefined, now: number): Span {
  const areMinutes = ms <= MOST_MINUTES_MS && (to ?? now) - ms >= now - MINUTES_KEPT_MS
  return { step: areMinutes ? 'minute' : 'hour', ms, to }
}

/** Shows a span: within what is kept, as long as it was. */
export function showSpan(from: number, to: number): void {
  const now = Date.now()
  const ms = Math.min(Math.max(to - from, SHORTEST_MS), KEPT_MS)
  const last = Math.min(Math.max((from + to + ms) / 2, now - KEPT_MS + ms), now)
  const text = (at: number) => new Date(Math.round(at / MINUTE_MS) * MINUTE_MS).toISOString().replace(':00.000Z', 'Z')
  goWith('overview', { from: text(last - ms), to: text(last) })
}

/** Moves the span of the overview. The mouse may also mark a part of the chart. */
export function Zoom({ span }: { span: Span }) {
  const { ms, to = Date.now() } = span
  const from = to - ms
  // The newest figures stay in sight.
  const inner = to > Date.now() - PRESENT_MS ? to : to - ms / 4
  const moves = [
    ['Earlier', from - ms / 2, to - ms / 2],
    ['Later', from + ms / 2, to + ms / 2],
    ['Zoom in', inner - ms / 2, inner],
    ['Zoom out', from - ms / 2, to + ms / 2],
  ] as const
  return (
    <p class="zoom">
      {moves.map(([name, first, last]) => (
        <button
          key={name}
          type="button"
          class="quiet view"
          disabled={name === 'Zoom in' && ms <= SHORTEST_MS}
          onClick={() => showSpan(first, last)}
        >
          {name}
        </button>
      ))}
    </p>
  )
}

const STEP_MS = { minute: MINUTE_MS, hour: HOUR_MS }
/** Steps that are shown as one, so that a chart has no more points than pixels. */
const GROUPS = { minute: [1, 2, 5, 10, 15, 30], hour: [1, 2, 3, 6, 12, 24] }

/** The part of a window's width that a chart has. */
const CHART_PART = 0.7

/** How many steps of a span are added up for each point. */
export function groupOf({ step, ms }: Span): number {
  const points = ms / STEP_MS[step]
  const most = innerWidth * CHART_PART
  return GROUPS[step].find((size) => points / size <= most) ?? (GROUPS[step].at(-1) as number)
}

/** Whole groups of steps that contain a span: what is asked for. */
export function bodyOf(span: Span, group: number) {
  const { step, ms, to = Date.now() } = span
  const size = group * STEP_MS[step]
  const from = Math.floor((to - ms) / size) * size
  // Rounded, so that it is asked for once a minute.
  const last = span.to === undefined ? Math.floor(to / MINUTE_MS) * MINUTE_MS : Math.ceil(to / size) * size - 1
  return { from, to: last, step }
}

/** A column of numbers in groups of steps. */
export function grouped(values: readonly number[], group: number): number[] {
  const sums: number[] = []
  for (const [i, value] of values.entries()) {
    const at = Math.floor(i / group)
    sums[at] = (sums[at] ?? 0) + value
  }
  return sums
}
