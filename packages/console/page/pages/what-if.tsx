import { useState } from 'preact/hooks'
import type { FiguresAnswer, UsedRow } from '../../src/figures/answers.js'
import { mostRefused } from '../../src/figures/what-if.js'
import type { Limit } from '../answers.js'
import { Section, Time } from '../parts/basics.js'
import { Choice, TextField } from '../parts/dialog.js'
import { isBucket, limitText, share, whole } from '../parts/format.js'

/** A limit with its figures. */
export interface LimitRow {
  readonly limiter: string
  /** Its name, and that of a tier after a point. */
  readonly policy: string
  readonly limit: Limit
  /** Its place among the limits of the policy, from 0. */
  readonly place: number
  readonly used: UsedRow | undefined
  /** Of the limiter, where its limits do not say. */
  readonly kinds?: readonly string[]
}

type KnownRow = LimitRow & { readonly used: UsedRow & { readonly capacity: number } }

/** Whether there is a lower limit, and a bound of what it would have refused. */
const isKnown = (row: LimitRow): row is KnownRow => (row.used?.capacity ?? 0) > 1

/** The requests that a lower limit would have refused at most. Nothing for limits without such a bound. */
export function WhatIf({ rows, processes }: { rows: readonly LimitRow[]; processes: FiguresAnswer['processes'] }) {
  const [chosen, choose] = useState('0')
  const [given, set] = useState<string>()
  const known = rows.filter(isKnown)
  const row = known[Number(chosen)] ?? known[0]
  if (!row) return null
  const { used, limit } = row
  const { capacity, decisions } = used
  const units = Number(given ?? Math.floor(capacity / 2))
  const most = mostRefused(used, units)
  const lower = limitText(isBucket(limit.algorithm) ? { ...limit, capacity: units } : { ...limit, limit: units })
  return (
    <Section title="What if a limit were lower">
      <div class="filters">
        <Choice
          label="Limit"
          value={String(known.indexOf(row))}
          of={known.map((each, i) => [String(i), `${each.policy}: ${limitText(each.limit)}`] as const)}
          set={(next) => {
            choose(next)
            set(undefined)
          }}
        />
        <TextField
          label={isBucket(limit.algorithm) ? 'Capacity, same refill' : 'Units'}
          type="number"
          value={given ?? String(units)}
          set={set}
        />
      </div>
      <p class="below" aria-live="polite">
        {most === undefined ? (
          `Type a number from 1 to ${whole(capacity - 1)}.`
        ) : (
          <>
            <b>{lower}</b> would have refused{' '}
            {most === 0 ? 'none' : `at most ${whole(most)} (${share(most / decisions)})`} of {whole(decisions)}{' '}
            decisions since <Time at={Math.min(...processes.map(({ startedAt }) => startedAt))} />, when the earliest
            process began.
          </>
        )}
      </p>
    </Section>
  )
}
