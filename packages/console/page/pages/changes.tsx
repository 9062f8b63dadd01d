import { useMemo } from 'preact/hooks'
import type { HistoryAnswer } from '../../src/figures/answers.js'
import type { Change } from '../answers.js'
import { useShell } from '../context.js'
import { useAsk, usePages } from '../live/use-ask.js'
import { Chip, Failure, Notice, PageHead, Section, Text, Time, Who } from '../parts/basics.js'
import { share } from '../parts/format.js'
import { More, Table } from '../parts/table.js'
import { PastCurves } from './overview.js'
import { Versions } from './versions.js'

const MINUTE_MS = 60_000
/** The span before and after a change that is compared. */
const BESIDE_MIN = 10

export function Changes() {
  const { has, about, policies } = useShell()
  const found = usePages<Change>(has('/api/changes') && about.features.changes ? '/api/changes' : undefined, {
    max: 50,
  })
  const to = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
  const hasHistory = has('/api/figures/history')
  const history = useAsk<HistoryAnswer>(
    hasHistory ? '/api/figures/history' : undefined,
    { from: to - 1440 * MINUTE_MS, to, step: 'minute' },
    MINUTE_MS / 2,
  )
  const effects = useMemo(() => history.answer && effectsOf(history.answer), [history.answer])
  if (!about.features.changes) {
    return (
      <>
        <PageHead title="Changes" />
        <Notice>This store keeps no log of changes.</Notice>
      </>
    )
  }
  return (
    <>
      <PageHead
        title="Changes"
        about="Who changed what, and the refusals before and after: a change that does harm shows as a step in the curve."
      />
      {hasHistory ? (
        <Section title="Refusals in the last hour">
          <PastCurves range={{ step: 'minute', ms: 60 * MINUTE_MS }} />
        </Section>
      ) : (
        <Notice>This console is of a version without figures: refusals before and after a change are not known.</Notice>
      )}
      <Section
        title="Log"
        aside={effects && <span class="muted">refused: share of decisions in {BESIDE_MIN} minutes before → after</span>}
      >
        <Failure of={found} />
        <ChangeTable
          changes={found.entries ?? (found.error ? [] : undefined)}
          isKnown={!found.error}
          effects={effects}
        />
        <More next={found.next} />
      </Section>
      {has('/api/versions') && policies && policies.documents.length > 0 && (
        <Section title="Versions of documents" aside={<span class="muted">the last twenty</span>}>
          <Versions limiters={policies.documents.map(({ limiter }) => limiter)} />
        </Section>
      )}
    </>
  )
}

interface ChangeTableProps {
  readonly changes: readonly Change[] | undefined
  readonly isKnown: boolean
  readonly effects: ((at: number) => Effect) | undefined
}

function ChangeTable({ changes, isKnown, effects }: ChangeTableProps) {
  return (
    <Table
      name="Changes"
      rows={changes}
      empty={isKnown ? 'No change is logged.' : 'The changes are not known.'}
      keyOf={({ number }) => number}
      columns={[
        { title: 'When', show: ({ at }) => <Time at={at} /> },
        { title: 'By', show: ({ by }) => (by === '' ? <span class="muted">unknown</span> : <Text>{by}</Text>) },
        { title: 'Action', show: (change) => <Action of={change} /> },
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text> },
        {
          title: 'Client',
          show: ({ kind, value, isErased }) =>
            isErased ? (
              <span class="muted">erased</span>
            ) : (
              kind !== undefined && value !== undefined && <Who {...{ kind, value }} />
            ),
        },
        effects && { title: 'Refused', isNumber: true, show: ({ at }) => <Beside {...effects(at)} /> },
        { title: 'Details', show: (change) => <Details of={change} /> },
      ]}
    />
  )
}

function Action({ of: { action, state } }: { of: Change }) {
  return (
    <>
      <Text>{action}</Text>{' '}
      {state !== 'done' && <Chip tone="warn">{state === 'failed' ? 'failed' : 'not known whether it was made'}</Chip>}
    </>
  )
}

function Details({ of: { before, after } }: { of: Change }) {
  if (before === undefined && after === undefined) return null
  return (
    <details>
      <summary>before and after</summary>
      {before !== undefined && <pre>before {JSON.stringify(before, null, 1)}</pre>}
      {after !== undefined && <pre>after {JSON.stringify(after, null, 1)}</pre>}
    </details>
  )
}

interface Effect {
  /** The share of decisions that were refusals; undefined without decisions. */
  readonly before: number | undefined
  readonly after: number | undefined
}

function effectsOf({ at, decisions, refused }: HistoryAnswer): (change: number) => Effect {
  const shareIn = (from: number, to: number) => {
    let [all, of] = [0, 0]
    for (const [i, start] of at.entries()) {
      if (start < from || start >= to) continue
      all += decisions[i] ?? 0
      of += refused[i] ?? 0
    }
    return all === 0 ? undefined : of / all
  }
  return (change) => {
    const minute = Math.floor(change / MINUTE_MS) * MINUTE_MS
    // The minute of the change belongs to neither.
    return {
      before: shareIn(minute - BESIDE_MIN * MINUTE_MS, minute),
      after: shareIn(minute + MINUTE_MS, minute + (BESIDE_MIN + 1) * MINUTE_MS),
    }
  }
}

function Beside({ before, after }: Effect) {
  const text = (part: number | undefined) => (part === undefined ? '–' : share(part))
  const isWorse = before !== undefined && after !== undefined && after > before + 0.05
  return <span class={isWorse ? 'worse' : undefined}>{`${text(before)} → ${text(after)}`}</span>
}
