import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { TailAnswer, TrafficFilter } from '../../src/traffic/answers.js'
import { ask, type Refused } from '../api.js'
import { Notice, Section, Text, Time, WhoOf } from '../parts/basics.js'
import { counted, share } from '../parts/format.js'
import { outcomeText } from '../parts/refusals.js'
import { Table } from '../parts/table.js'

const EVERY_MS = 1000
/** Rows that stay, and newer ones that wait. */
const MAX_ROWS = 100

type Row = TailAnswer['rows'][number] & { readonly key: number }

interface TailState {
  /** Of the last answer. */
  readonly after?: number
  readonly answers: number
  readonly rows: readonly Row[]
  /** Rows that wait while those before them are read. */
  readonly newer: readonly Row[]
  readonly last: TailAnswer | undefined
  readonly error: Refused | undefined
}

const NOTHING: TailState = { answers: 0, rows: [], newer: [], last: undefined, error: undefined }
/** Answers before the first decisions can be there: processes write a second once it is over. */
const EARLY_ANSWERS = 6

/** What was shown for the last filters: whoever comes back, be it from the page of a client, reads on. */
const TAILS = new Map<string, { readonly state: TailState; readonly isHeld: boolean; readonly top: number }>()
const MAX_TAILS = 5
/** Whether decisions are watched, also with another filter. */
const WATCH = { isOn: false }

/** What is decided now, asked for each second while it is on and the page is seen. While it is held, newer rows wait. */
function useTail(of: string, isOn: boolean, isHeld: boolean): TailState {
  const [state, setState] = useState(() => TAILS.get(of)?.state ?? NOTHING)
  const held = useRef(isHeld)
  held.current = isHeld
  const latest = useRef(state)
  latest.current = state
  useEffect(() => {
    if (isHeld) return
    setState((before) => ({ ...before, rows: joined(before.newer, before.rows), newer: [] }))
  }, [isHeld])
  useEffect(() => {
    if (!isOn) return
    let { after } = latest.current
    const ending = new AbortController()
    async function look() {
      if (document.hidden) return
      try {
        const answer = await ask<TailAnswer>('/api/tail', { ...JSON.parse(of), ...(after && { after }) }, ending.signal)
        const isFirst = after === undefined
        after = answer.after
        // The first answer has seconds before the filter was open.
        const rows = answer.rows.map((row) => ({ ...row, key: ROWS.seen++ }))
        setState((before) => ({
          after: answer.after,
          answers: before.answers + 1,
          ...(held.current
            ? { rows: before.rows, newer: joined(rows, before.newer) }
            : { rows: joined(rows, before.rows), newer: [] }),
          last: isFirst && rows.length === 0 ? before.last : answer,
          error: undefined,
        }))
      } catch (error) {
        if (!ending.signal.aborted) setState((before) => ({ ...before, error: error as Refused }))
      }
    }
    void look()
    const timer = setInterval(() => void look(), EVERY_MS)
    return () => {
      clearInterval(timer)
      ending.abort()
    }
  }, [of, isOn])
  return state
}

/** A number for each row, also of a tail that is shown again. */
const ROWS = { seen: 0 }

const joined = (newer: readonly Row[], older: readonly Row[]): readonly Row[] => [...newer, ...older].slice(0, MAX_ROWS)

/** The decisions of now that fit the filters. Off until it is asked for. Another filter is another one of these. */
export function LiveTail({ filter }: { filter: TrafficFilter }) {
  const of = JSON.stringify(filter)
  const [before] = useState(() => TAILS.get(of))
  const [isBegun, setBegun] = useState(WATCH.isOn)
  const [isPaused, setPaused] = useState(before?.isHeld === true)
  // Whoever scrolls down reads: nothing moves then.
  const [isScrolled, setScrolled] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  const isHeld = isPaused || isScrolled
  const state = useTail(of, isBegun, isHeld)
  const { rows, newer, last, error, answers } = state
  useLayoutEffect(() => list.current?.scrollTo(0, before?.top ?? 0), [before])
  const keep = (top: number) => {
    TAILS.delete(of)
    TAILS.set(of, { state, isHeld, top })
    const [oldest] = TAILS.keys()
    if (TAILS.size > MAX_TAILS && oldest !== undefined) TAILS.delete(oldest)
  }
  useEffect(() => {
    WATCH.isOn = isBegun
    if (isBegun) keep(list.current?.scrollTop ?? 0)
  })
  function press() {
    if (!isBegun) return setBegun(true)
    if (isPaused) list.current?.scrollTo(0, 0)
    setPaused(!isPaused)
  }
  return (
    <Section
      title="Live decisions"
      aside={
        <button type="button" class="primary watch" onClick={press}>
          {!isBegun ? 'Watch' : isPaused ? 'Go on' : 'Pause'}
        </button>
      }
    >
      {error && <Notice tone="bad">{error.message}</Notice>}
      {!isBegun && <p class="muted">Watch shows what is decided now, with the filters of this page.</p>}
      {isBegun && (
        <>
          <p class="muted tail-state">
            {isPaused ? 'Paused. ' : isScrolled ? 'Held while you read; scroll up to go on. ' : 'Some seconds behind. '}
            {isHeld && `${newer.length >= MAX_ROWS ? 'At least ' : ''}${counted(newer.length, 'newer decision')}. `}
            {last && last.share < 1
              ? `Shows ${share(last.share)} of the decisions that fit: at most 50 a second of each process.`
              : 'Shows every decision that fits.'}
          </p>
          <div
            class="tail"
            ref={list}
            onScroll={(event) => {
              const { scrollTop } = event.currentTarget
              setScrolled(scrollTop > 0)
              keep(scrollTop)
            }}
          >
            <Table
              name="Live decisions"
              rows={rows}
              empty={
                answers < EARLY_ANSWERS
                  ? 'The first decisions come after some seconds.'
                  : 'Nothing that fits was decided yet.'
              }
              keyOf={({ key }) => key}
              columns={[
                { title: 'When', show: ({ at }) => <Time at={at} /> },
                { title: 'Outcome', show: ({ reason }) => outcomeText(reason) },
                {
                  title: 'Client',
                  show: ({ clients }) =>
                    clients.map((text, i) => (
                      <span key={text}>
                        {i > 0 && ', '}
                        <WhoOf text={text} />
                      </span>
                    )),
                },
                { title: 'Policy', show: ({ policies }) => <Text>{policies.join(', ')}</Text> },
                { title: 'Path', show: ({ path }) => path !== undefined && <code>{path}</code> },
              ]}
            />
          </div>
        </>
      )}
    </Section>
  )
}
