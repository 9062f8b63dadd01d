import type { HistoryAnswer } from '../../src/figures/answers.js'
import { useAsk } from '../live/use-ask.js'
import { shortTime } from '../parts/format.js'
import { HOUR_MS, KEPT_MS, MINUTES_KEPT_MS } from './span.js'

/** The first step in which a process reported, in ms since 1970. */
export const firstIn = (answer: HistoryAnswer | undefined): number | undefined =>
  answer?.at.find((_, i) => answer.processes[i] !== 0)

/** Stands for the chart of a span that has no figures. It says when they begin, where that is after the span. */
export function NoFigures({ to }: { to: number }) {
  const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const hour = firstIn(useAsk<HistoryAnswer>(PATH, { from: now - KEPT_MS, to: now, step: 'hour' }).answer)
  const hasMinutes = hour !== undefined && hour > now - MINUTES_KEPT_MS
  const ofHour = { from: hour, to: (hour ?? 0) + HOUR_MS - 1, step: 'minute' }
  const minute = firstIn(useAsk<HistoryAnswer>(hasMinutes ? PATH : undefined, ofHour).answer)
  const first = minute ?? hour ?? 0
  return <p class="empty">{first > to ? `No figures before ${shortTime(first)}.` : 'This span has no figures.'}</p>
}

const PATH = '/api/figures/history'
