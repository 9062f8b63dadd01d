import { useEffect, useRef, useState } from 'preact/hooks'
import type { TailAnswer, TrafficFilter } from '../../src/traffic/answers.js'
import { ask, type Refused } from '../api.js'
import { Notice, Section, Text, Time, WhoOf } from '../parts/basics.js'
import { share } from '../parts/format.js'
import { outcomeText } from '../parts/refusals.js'
import { Table } from '../parts/table.js'

const EVERY_MS = 1000
/** Rows that stay. */
const MAX_ROWS = 100

type Row = TailAnswer['rows'][number] & { readonly key: number }

interface TailState {
  readonly rows: readonly Row[]
  readonly last: TailAnswer | undefined
  readonly error: Refused | undefined
}

const NOTHING: TailState = { rows: [], last: undefined, error: undefined }

/** What is decided now, asked for each second while it is on and the page is seen. */
function useTail(filter: TrafficFilter, isOn: boolean): TailState {
  const [state, setState] = useState(NOTHING)
  const next = useRef(0)
  const of = JSON.stringify(filter)
  useEffect(() => setState(NOTHING), [of])
  useEffect(() => {
    if (!isOn) return
    let after: number | undefined
    const ending = new AbortController()
    async function look() {
      if (document.hidden) return
      try {
        const answer = await ask<TailAnswer>('/api/tail', { ...JSON.parse(of), ...(after && { after }) }, ending.signal)
        const isFirst = after === undefined
        after = answer.after
        // The first answer has seconds before the filter was open.
        const rows = answer.rows.map((row) => ({ ...row, key: next.current++ }))
        setState((before) => ({
          rows: [...rows, ...before.rows].slice(0, MAX_ROWS),
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

/** The decisions of now that fit the filters. Off until it is asked for. */
export function LiveTail({ filter }: { filter: TrafficFilter }) {
  const [isOn, setOn] = useState(false)
  const { rows, last, error } = useTail(filter, isOn)
  const isBegun = isOn || rows.length > 0
  return (
    <Section
      title="Live decisions"
      aside={
        <button type="button" class="primary watch" onClick={() => setOn(!isOn)}>
          {isOn ? 'Pause' : isBegun ? 'Go on' : 'Watch'}
        </button>
      }
    >
      {error && <Notice tone="bad">{error.message}</Notice>}
      {!isBegun && <p class="muted">Watch shows what is decided now, with the filters of this page.</p>}
      {isBegun && (
        <>
          <p class="muted">
            {isOn ? 'Some seconds behind. ' : 'Paused. '}
            {last && last.share < 1
              ? `Shows ${share(last.share)} of the decisions that fit: at most 50 a second of each process.`
              : 'Shows every decision that fits.'}
          </p>
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
        </>
      )}
    </Section>
  )
}
