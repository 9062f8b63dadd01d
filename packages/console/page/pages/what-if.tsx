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

/** Why there is no bound for a lower limit. */
function unknownWhy({ used, limit }: LimitRow): string {
  if (!used) return 'no decision on it was counted'
  if (used.resized) return 'its size has changed since the processes began, or clients have limits of their own'
  if (used.capacity === 1) return 'no limit is lower than 1'
  if (limit.algorithm === 'concurrency') return 'its permits are held and released'
  return 'requests of its limiter cost other than 1, wait for their turn, or return units, as where a policy with lists of its own refuses what another has charged'
}

/** The requests that a lower limit would have refused at most, or why that is not known. */
export function WhatIf({ rows, processes }: { rows: readonly LimitRow[]; processes: FiguresAnswer['processes'] }) {
  const [chosen, choose] = useState<string>()
  const [given, set] = useState<string>()
  const row = rows[Number(chosen ?? Math.max(rows.findIndex(isKnown), 0))] ?? rows[0]
  if (!row) return null
  return (
    <Section title="What if a limit were lower">
      <div class="filters">
        <Choice
          label="Limit"
          value={String(rows.indexOf(row))}
          of={rows.map((each, i) => [String(i), nameOf(each)] as const)}
          set={(next) => {
            choose(next)
            set(undefined)
          }}
        />
        {isKnown(row) && (
          <TextField
            label={isBucket(row.limit.algorithm) ? 'Capacity, same refill' : 'Units'}
            type="number"
            value={String(given ?? half(row))}
            set={set}
          />
        )}
      </div>
      {isKnown(row) ? (
        <Bound row={row} units={Number(given ?? half(row))} processes={processes} />
      ) : (
        <p class="below" aria-live="polite">
          Not known: {unknownWhy(row)}.
        </p>
      )}
    </Section>
  )
}

const nameOf = (row: LimitRow): string => `${row.policy}: ${limitText(row.limit)}${isKnown(row) ? '' : ' (not known)'}`

/** The number that is proposed. */
const half = ({ used }: KnownRow): number => Math.floor(used.capacity / 2)

interface BoundProps {
  readonly row: KnownRow
  readonly units: number
  readonly processes: FiguresAnswer['processes']
}

function Bound({ row: { used, limit }, units, processes }: BoundProps) {
  const { capacity, decisions } = used
  const most = mostRefused(used, units)
  const lower = limitText(isBucket(limit.algorithm) ? { ...limit, capacity: units } : { ...limit, limit: units })
  return (
    <p class="below" aria-live="polite">
      {most === undefined ? (
        `Type a number from 1 to ${whole(capacity - 1)}.`
      ) : (
        <>
          <b>{lower}</b> would have refused{' '}
          {most === 0 ? 'none' : `at most ${whole(most)} (${share(most / decisions)})`} of {whole(decisions)} decisions
          since <Time at={Math.min(...processes.map(({ startedAt }) => startedAt))} />, when the earliest process began.
        </>
      )}
    </p>
  )
}
