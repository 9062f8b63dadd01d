import { useCallback, useEffect, useState } from 'preact/hooks'
import type { PageOf, RollbackPlan, SavedOverride, Version } from '../answers.js'
import { ask } from '../api.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Chip, Failure, Notice, Text, Time, Who } from '../parts/basics.js'
import { ActionDialog } from '../parts/dialog.js'
import { changedText } from '../parts/format.js'
import { Table } from '../parts/table.js'

export interface VersionsAnswer {
  readonly versions: readonly Version[]
  readonly canSave: boolean
}

interface VersionsProps {
  readonly limiters: readonly string[]
  /** Shows those of one person. */
  readonly by: string | undefined
}

/** The versions of each document. Documents that have none for the same reason share one sentence. */
export function Versions({ limiters, by }: VersionsProps) {
  const [why, setWhy] = useState<Readonly<Record<string, string>>>({})
  const noVersions = useCallback((limiter: string, message: string) => {
    setWhy((known) => ({ ...known, [limiter]: message }))
  }, [])
  const sentences = [...new Set(Object.values(why))]
  return (
    <>
      {limiters.map((limiter) => (
        <VersionsOf key={limiter} {...{ limiter, by, noVersions }} />
      ))}
      {sentences.map((sentence) => (
        <p key={sentence} class="muted">
          <Text>{limiters.filter((limiter) => why[limiter] === sentence).join(', ')}</Text>: {sentence}
        </p>
      ))}
    </>
  )
}

interface VersionsOfProps extends Pick<VersionsProps, 'by'> {
  readonly limiter: string
  readonly noVersions: (limiter: string, message: string) => void
}

function VersionsOf({ limiter, by, noVersions }: VersionsOfProps) {
  const { mayAct, open } = useShell()
  const found = useAsk<VersionsAnswer>('/api/versions', { limiter })
  const title = `Versions of ${limiter}`
  const without = found.error?.status === 501 ? found.error.message : undefined
  useEffect(() => {
    if (without !== undefined) noVersions(limiter, without)
  }, [limiter, without, noVersions])
  if (without !== undefined) return null
  const newest = found.answer?.versions[0]?.version
  const shown = found.answer?.versions.filter((version) => !by || version.by === by)
  return (
    <>
      <h3>
        <Text>{limiter}</Text>
      </h3>
      <Failure of={found} />
      <Table
        name={title}
        rows={shown ?? (found.error ? [] : undefined)}
        empty={found.error ? 'They are not known.' : by ? 'None of these versions is theirs.' : 'No version was saved.'}
        keyOf={({ version }) => version}
        columns={[
          {
            title: 'Version',
            isNumber: true,
            show: ({ version }) => (
              <>
                {version === newest && <Chip tone="good">in force</Chip>} {version}
              </>
            ),
          },
          { title: 'When', show: ({ at }) => <Time at={at} /> },
          { title: 'By', show: ({ by }) => <Text>{by}</Text> },
          { title: 'Differences', show: ({ differences }) => <Differences lines={differences} /> },
          mayAct && {
            title: 'Action',
            isHidden: true,
            show: ({ version }) =>
              version !== newest && (
                <button type="button" class="quiet" onClick={() => open(<RollbackDialog {...{ limiter, version }} />)}>
                  Roll back
                </button>
              ),
          },
        ]}
      />
    </>
  )
}

function Differences({ lines }: { lines: readonly string[] | undefined }) {
  if (!lines) return <span class="muted">not compared</span>
  if (lines.length === 0) return <span class="muted">spelling alone</span>
  return <pre>{lines.join('\n')}</pre>
}

export function RollbackDialog({ limiter, version }: { limiter: string; version: number }) {
  const { answer: plan, error } = useAsk<RollbackPlan>('/api/rollback/plan', { limiter, version })
  return (
    <ActionDialog
      title={`Roll back to version ${version}`}
      what={
        <p>
          The text of version {version} is saved as the newest one of <Text>{limiter}</Text>, and decides in every
          process that follows it.
        </p>
      }
      submit="Roll back"
      isDangerous
      isReady={plan?.canSave === true && plan.error === undefined}
      run={async () => {
        const saved = await ask<{ version: number }>('/api/rollback', { limiter, version, expected: plan?.expected })
        return `Version ${version} of ${limiter} is in force again, as version ${saved.version}.`
      }}
    >
      {error && <Notice tone="bad">{error.message}</Notice>}
      {!plan && !error && <Notice>Working out the differences.</Notice>}
      {plan?.error !== undefined && <Notice tone="bad">This process would not take it: {plan.error}</Notice>}
      {plan && !plan.canSave && (
        <Notice>The console has no connection that may write this document: use sluice rollback in a terminal.</Notice>
      )}
      {plan && <Differences lines={plan.differences} />}
      <OverridesStay limiter={limiter} />
    </ActionDialog>
  )
}

const MAX_OVERRIDES = 5

/** A rollback changes everybody's limits: those of single clients may be lower then. */
function OverridesStay({ limiter }: { limiter: string }) {
  const { has } = useShell()
  const of = { limiter, max: MAX_OVERRIDES + 1 }
  const { answer } = useAsk<PageOf<SavedOverride>>(has('/api/overrides') ? '/api/overrides' : undefined, of)
  if (!answer || answer.entries.length === 0) return null
  return (
    <Notice>
      Overrides stay in force, also one that is lower than the limit of this version:
      <ul>
        {answer.entries.slice(0, MAX_OVERRIDES).map((override) => (
          <li key={`${override.policy} ${override.kind}=${override.value}`}>
            <Who {...override} />, <Text>{override.policy}</Text>: {override.limits.map(changedText).join('; ')}
          </li>
        ))}
        {answer.entries.length > MAX_OVERRIDES && <li>others</li>}
      </ul>
    </Notice>
  )
}
