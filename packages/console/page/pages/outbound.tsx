import { useRef } from 'preact/hooks'
import type { FiguresAnswer, HistoryAnswer, OutboundRow, QuotaRow } from '../../src/figures/answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Section, Text, Time } from '../parts/basics.js'
import { whole } from '../parts/format.js'
import { Table } from '../parts/table.js'

const EVERY_MS = 5000
const MINUTE_MS = 60_000
const MINUTES = 15

const OUTCOMES = [
  ['accepted', 'Accepted'],
  ['refused', 'Refused by a rate limit'],
  ['final', 'Refused for good'],
  ['failed', 'No response'],
  ['unsent', 'Kept back'],
] as const

/** How other services respond to the calls of these processes, and what they told of their limits. */
export function Outbound({ figures: { at, sum } }: { figures: FiguresAnswer }) {
  const history = useLastMinutes(at)
  const { known } = history
  const countOf = (policy: string, outcome: string) =>
    known?.responses
      .filter((row) => row.policy === policy && row.outcome === outcome)
      .reduce((all, { counts }) => counts.reduce((sum, count) => sum + count, all), 0)
  const quotas = sum.outbound.flatMap(({ policy, quotas }) => quotas.map((quota) => ({ policy, ...quota })))
  return (
    <Section title="Calls to other services" aside={<span class="muted">responses of the last {MINUTES} minutes</span>}>
      <Failure of={history} />
      <Table
        name="Calls to other services"
        rows={sum.outbound}
        empty=""
        keyOf={({ policy }) => policy}
        columns={[
          { title: 'Name', show: ({ policy }) => <Text>{policy}</Text> },
          ...OUTCOMES.map(([outcome, title]) => ({
            title,
            isNumber: true,
            show: ({ policy }: OutboundRow) => numberOrDash(countOf(policy, outcome)),
          })),
          { title: 'No requests until', show: ({ heldUntil }) => (heldUntil === null ? '–' : <Time at={heldUntil} />) },
        ]}
      />
      {quotas.length > 0 && (
        <>
          <h3>Limits as the services told them last</h3>
          <Table
            name="Limits of other services"
            rows={quotas}
            empty=""
            keyOf={({ policy, limit }) => JSON.stringify([policy, limit])}
            columns={[
              { title: 'Name', show: ({ policy }) => <Text>{policy}</Text> },
              { title: 'Limit', show: ({ limit }) => <Text>{limit}</Text> },
              { title: 'Left', show: (quota) => <Left {...quota} /> },
              { title: 'Reset', show: ({ resetAt }) => (resetAt === null ? '–' : <Time at={resetAt} />) },
              { title: 'Told', show: ({ toldAt }) => <Time at={toldAt} /> },
            ]}
          />
        </>
      )}
    </Section>
  )
}

const numberOrDash = (count: number | undefined): string => (count === undefined ? '–' : whole(count))

/** `40 of 50 requests`. */
function Left({ remaining, units, unit }: QuotaRow) {
  return (
    <>
      {numberOrDash(remaining ?? undefined)}
      {units !== null && ` of ${whole(units)}`} <Text>{unit}</Text>
    </>
  )
}

/** The minutes up to `at`. Their last answer stays until that of the next minute is there. */
function useLastMinutes(at: number) {
  const { has } = useShell()
  const to = Math.floor(at / MINUTE_MS) * MINUTE_MS
  const body = { from: to - (MINUTES - 1) * MINUTE_MS, to, step: 'minute' }
  const asked = useAsk<HistoryAnswer>(has('/api/figures/history') ? '/api/figures/history' : undefined, body, EVERY_MS)
  const known = useRef(asked.answer)
  known.current = asked.answer ?? known.current
  return { ...asked, known: known.current }
}
