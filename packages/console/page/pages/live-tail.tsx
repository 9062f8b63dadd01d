import { useEffect, useRef, useState } from 'preact/hooks'
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
  /** The filter, as text. */
  readonly of: string
  /** Of the last answer. */
  readonly after?: number
  readonly rows: readonly Row[]
  /** Rows that wait while those before them are read. */
  readonly newer: readonly Row[]
  readonly last: TailAnswer | undefined
  readonly error: Refused | undefined
}

const nothingOf = (of: string): TailState => ({ of, rows: [], newer: [], last: undefined, error: undefined })

/** What is shown: whoever comes back from the page of a client reads on. */
const left: { tail?: { readonly state: TailState; readonly isHeld: boolean } | undefined } = {}
const leftWith = (of: string) => (left.tail?.state.of === of ? left.tail : undefined)

/** What is decided now, asked for each second while it is on and the page is seen. While it is held, newer rows wait. */
function useTail(filter: TrafficFilter, isOn: boolean, isHeld: boolean): TailState {
  const of = JSON.stringify(filter)
  const [state, setState] = useState(() => leftWith(of)?.state ?? nothingOf(of))
  const shown = state.of === of ? state : nothingOf(of)
  const held = useRef(isHeld)
  held.current = isHeld
  const latest = useRef(shown)
  latest.current = shown
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
        setState((given) => {
          const before = given.of === of ? given : nothingOf(of)
          return {
            of,
            after: answer.after,
            ...(held.current
              ? { rows: before.rows, newer: joined(rows, before.newer) }
              : { rows: joined(rows, before.rows), newer: [] }),
            last: isFirst && rows.length === 0 ? before.last : answer,
            error: undefined,
          }
        })
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
  return shown
}

/** A number for each row, also of a tail that is shown again. */
const ROWS = { seen: 0 }

const joined = (newer: readonly Row[], older: readonly Row[]): readonly Row[] => [...newer, ...older].slice(0, MAX_ROWS)

/** The decisions of now that fit the filters. Off until it is asked for. */
export function LiveTail({ filter }: { filter: TrafficFilter }) {
  const before = leftWith(JSON.stringify(filter))
  const [isBegun, setBegun] = useState(before !== undefined)
  const [isPaused, setPaused] = useState(before?.isHeld === true)
  // Whoever scrolls down reads: nothing moves then.
  const [isScrolled, setScrolled] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  const isHeld = isPaused || isScrolled
  const state = useTail(filter, isBegun, isHeld)
  const { rows, newer, last, error } = state
  useEffect(() => {
    left.tail = isBegun ? { state, isHeld } : undefined
  }, [state, isHeld, isBegun])
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
          <div class="tail" ref={list} onScroll={(event) => setScrolled(event.currentTarget.scrollTop > 0)}>
            <Table
              name="Live decisions"
              rows={rows}
              empty="Nothing that fits was decided yet."
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
