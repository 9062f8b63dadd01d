import { useEffect, useState } from 'preact/hooks'
import type { FiguresAnswer, HistoryAnswer, RoundTrip, StreamMessage } from '../../src/figures/answers.js'
import { roundTripIn } from '../../src/figures/quantile.js'
import { ask, Refused, send } from '../api.js'
import { tellAway } from './use-ask.js'

/** Points of the live curve: five minutes of seconds. */
const MAX_POINTS = 300
const SPAN_MS = MAX_POINTS * 1000
const POLL_MS = 5000
/** Without figures for as long, as while the page was not seen, there is a gap. */
const GAP_MS = 15_000
const MINUTE_MS = 60_000
/** Without a line for this long, the stream is lost. */
const SILENCE_MS = 30_000
/** A longer line is none of ours. */
const MAX_LINE = 4_194_304

export interface Point {
  /** Ms since 1970. */
  readonly at: number
  readonly decisions: number
  readonly refused: number
  /** Would be refused; not enforced. */
  readonly reported: number
  readonly alone: number
}

export interface Live {
  readonly latest: FiguresAnswer | undefined
  readonly points: readonly Point[]
  /** Times until the store has decided, of the last minute once it was seen for so long; `null` above the last bound, or without any. */
  readonly roundTrip: RoundTrip & { readonly isOfMinute: boolean }
  /** Why there are no figures, and since when. */
  readonly problem: { readonly detail: string; readonly since: number } | undefined
  /** Whether this console has none: it is of an older version. */
  readonly isAbsent: boolean
}

const NOT_MEASURED = { p50: null, p99: null, measured: 0, isOfMinute: false }

/** The figures of now, by a stream, or by polls where that cannot be had. Nothing is asked while the page is not seen. */
class LiveFigures {
  live: Live = { latest: undefined, points: [], roundTrip: NOT_MEASURED, problem: undefined, isAbsent: false }
  readonly #listeners = new Set<() => void>()
  #ending: AbortController | undefined
  #measured: { readonly at: number; readonly counts: readonly number[] }[] = []

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The last five minutes by the minute, as these are kept, where there are no points of its own. */
  async #fill(): Promise<void> {
    const to = Date.now()
    const body = { from: to - SPAN_MS, to, step: 'minute' }
    const past = await ask<HistoryAnswer>('/api/figures/history', body).catch(() => undefined)
    if (!past) return
    const minutes = past.at.flatMap((at, i): Point[] => {
      if (past.processes[i] === 0 || at + MINUTE_MS > past.now) return []
      const isSeen = this.live.points.some((point) => point.at >= at && point.at < at + MINUTE_MS)
      const perSecond = (column: readonly number[]) => (column[i] ?? 0) / 60
      const refused = perSecond(past.refused)
      const reported = perSecond(past.reported)
      return isSeen
        ? []
        : [{ at, decisions: perSecond(past.decisions), refused, reported, alone: perSecond(past.alone) }]
    })
    this.#set({ points: [...minutes, ...this.live.points].sort((one, other) => one.at - other.at) })
  }

  /** Begins, unless it has. */
  start(): void {
    const follow = () => {
      if (document.hidden) this.#ending?.abort()
      else if (!this.#ending || this.#ending.signal.aborted) void this.#run()
    }
    document.addEventListener('visibilitychange', follow)
    follow()
  }

  async #run(): Promise<void> {
    const ending = new AbortController()
    this.#ending = ending
    while (!ending.signal.aborted && !this.live.isAbsent) {
      const isLasting = await this.#stream(ending).catch(() => false)
      if (ending.signal.aborted) return
      if (!isLasting) await this.#poll(ending.signal)
      await new Promise((resolve) => setTimeout(resolve, isLasting ? 1000 : POLL_MS))
    }
  }

  /** Resolves to whether another stream may be opened at once. */
  async #stream(ending: AbortController): Promise<boolean> {
    const own = new AbortController()
    const stop = () => own.abort()
    ending.signal.addEventListener('abort', stop)
    let silence = setTimeout(stop, SILENCE_MS)
    try {
      const response = await send('/api/stream', undefined, own.signal)
      if (!response.body) return false
      let hasFigures = false
      for await (const line of linesOf(response.body)) {
        clearTimeout(silence)
        silence = setTimeout(stop, SILENCE_MS)
        const message: StreamMessage = JSON.parse(line)
        if (message.type === 'figures') this.#show(message)
        if (message.type === 'problem') this.#fail(message.detail)
        if (message.type === 'end') return message.reason !== 'refused'
        hasFigures ||= message.type === 'figures'
      }
      return hasFigures
    } finally {
      clearTimeout(silence)
      ending.signal.removeEventListener('abort', stop)
      stop()
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    try {
      this.#show(await ask<FiguresAnswer>('/api/figures', undefined, signal))
    } catch (error) {
      if (signal.aborted || !(error instanceof Refused)) return
      if (error.status === 404) this.#set({ isAbsent: true })
      else this.#fail(error.message)
    }
  }

  #show(latest: FiguresAnswer): void {
    const { perSecond } = latest.sum
    const point = { at: latest.at, ...perSecond }
    const before = this.live.points.filter(({ at }) => at < latest.at && at > latest.at - SPAN_MS - MINUTE_MS)
    const isGap = latest.at - (before.at(-1)?.at ?? 0) > GAP_MS
    const points = [...before, point].slice(-MAX_POINTS)
    this.#set({ latest, points, roundTrip: this.#roundTrip(latest), problem: undefined })
    if (isGap) void this.#fill()
  }

  /** By what was measured since a minute ago: processes count from their beginning. */
  #roundTrip({ at, sum: { durations, roundTrip } }: FiguresAnswer): Live['roundTrip'] {
    this.#measured = [...this.#measured.filter((each) => each.at >= at - MINUTE_MS), { at, counts: durations.counts }]
    const [first] = this.#measured
    // Seen for less than a minute: those since the processes began.
    if (!first || at - first.at < MINUTE_MS * 0.9) return { ...roundTrip, isOfMinute: false }
    const before = first.counts
    // Of a process that has ended, the counts are gone.
    const counts = durations.counts.map((count, i) => Math.max(count - (before[i] ?? 0), 0))
    return { ...roundTripIn(durations.bounds, counts), isOfMinute: true }
  }

  #fail(detail: string): void {
    if (!this.live.problem) tellAway()
    this.#set({ problem: { detail, since: this.live.problem?.since ?? Date.now() } })
  }

  #set(live: Partial<Live>): void {
    this.live = { ...this.live, ...live }
    for (const listener of this.#listeners) listener()
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE) return
      yield* lines.filter((line) => line !== '')
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

export const figures = new LiveFigures()

export function useFigures(): Live {
  const [live, setLive] = useState(figures.live)
  useEffect(() => {
    setLive(figures.live)
    return figures.listen(() => setLive(figures.live))
  }, [])
  return live
}
