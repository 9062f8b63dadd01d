import { useState } from 'preact/hooks'
import { BlockDialog } from '../actions/block.js'
import type { OffendersAnswer } from '../answers.js'
import { useShell } from '../context.js'
import { useFigures } from '../live/figures.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Time, Who } from '../parts/basics.js'
import { Choice } from '../parts/dialog.js'
import { counted, policyIn, share, whole } from '../parts/format.js'
import { Table } from '../parts/table.js'
import { addressOf } from '../router.js'
import { Bar } from './client.js'

const SPANS = [
  ['10m', 'the last 10 minutes'],
  ['1h', 'the last hour'],
  ['1d', 'the last day'],
] as const

export function Offenders() {
  const { about, policies, has } = useShell()
  const { latest, isAbsent, problem } = useFigures()
  const names = namesOf(policies, latest?.sum.rows.map(({ policy }) => policy) ?? [])
  const [chosen, setChosen] = useState<string>()
  const [span, setSpan] = useState('1h')
  const policy = chosen ?? names[0]
  const off = latest && !latest.offenders.counted ? latest.offenders.hint : undefined
  // The figures say whether they are counted.
  const isWaiting = has('/api/figures') && !isAbsent && !problem && !latest
  const found = useAsk<OffendersAnswer>(
    policy === undefined || off !== undefined || isWaiting ? undefined : '/api/offenders',
    { policy, in: span, top: 100 },
    10_000,
  )
  return (
    <>
      <PageHead
        title="Offenders"
        about={
          <>
            The clients that a policy refuses most often.
            {about.features.traffic && (
              <>
                {' '}
                Those of every policy together are in <a href={addressOf('traffic', { by: 'refused' })}>Traffic</a>.
              </>
            )}
          </>
        }
      />
      {off !== undefined ? (
        <Notice>{off}</Notice>
      ) : (
        <>
          <div class="filters">
            {policy !== undefined && (
              <Choice label="Policy" value={policy} of={names.map((name) => [name, name] as const)} set={setChosen} />
            )}
            <Choice label="Span" value={span} of={SPANS} set={setSpan} />
          </div>
          {policy === undefined && (
            <Notice>This console was given no policy, and none has decided anything yet.</Notice>
          )}
          <Failure of={found} />
          {found.error && !found.answer && (
            <Notice>
              Refusals by client are counted where the store is made with <code>offenders: true</code>.
            </Notice>
          )}
          {policy !== undefined && !found.error && <Report answer={found.answer} />}
        </>
      )}
    </>
  )
}

function namesOf(policies: ReturnType<typeof useShell>['policies'], seen: readonly string[]): readonly string[] {
  const limiters = policies?.limiters.map(({ name }) => name) ?? []
  const documents = policies?.documents.flatMap((each) => each.policies.map(({ name }) => policyIn(name))) ?? []
  return [...new Set([...limiters, ...documents, ...seen])]
}

function Report({ answer }: { answer: OffendersAnswer | undefined }) {
  const { mayAct, open } = useShell()
  const most = answer?.offenders[0]?.refusals ?? 1
  return (
    <>
      {answer && answer.refusals > 0 && (
        <p class="muted">
          {counted(answer.refusals, 'refusal')} in all since <Time at={answer.since} />.
        </p>
      )}
      <Table
        name="Offenders"
        rows={answer?.offenders}
        empty="This policy has refused no client in this span."
        keyOf={({ kind, value }) => `${kind}=${value}`}
        columns={[
          { title: 'Client', show: (offender) => <Who {...offender} />, sort: ({ kind, value }) => `${kind} ${value}` },
          {
            title: 'Refusals',
            isNumber: true,
            show: ({ refusals }) => whole(refusals),
            sort: ({ refusals }) => refusals,
          },
          {
            title: 'Share',
            isNumber: true,
            show: ({ refusals }) => share(refusals / Math.max(answer?.refusals ?? 1, 1)),
          },
          { title: 'Beside the first', show: ({ refusals }) => <Bar share={refusals / most} /> },
          mayAct && {
            title: 'Action',
            isHidden: true,
            show: ({ kind, value }) =>
              !kind.includes('+') && (
                <button type="button" class="quiet" onClick={() => open(<BlockDialog identity={{ kind, value }} />)}>
                  Block
                </button>
              ),
          },
        ]}
      />
    </>
  )
}
