import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { EndOverrideDialog, UnblockDialog, UnlistDialog } from '../actions/actions.js'
import type { Change, PageOf, Version } from '../answers.js'
import { ask } from '../api.js'
import { useShell } from '../context.js'
import { useAsk, useAsked, usePages } from '../live/use-ask.js'
import { Chip, Failure, Notice, Operator, PageHead, Section, Text, Time, Who } from '../parts/basics.js'
import { Choice } from '../parts/dialog.js'
import { blockFrom, Difference, differenceOf } from '../parts/difference.js'
import { policyIn } from '../parts/format.js'
import { More, Table } from '../parts/table.js'
import { goWith, type Query } from '../router.js'
import { type DocumentChange, Effects } from './effect.js'
import { PastCurves } from './overview.js'
import { RollbackDialog, Versions, type VersionsAnswer } from './versions.js'

const MINUTE_MS = 60_000
const EVERY_MS = 30_000
/** Changes of documents that are compared with the time before. */
const MAX_COMPARED = 4
/** Changes of all, beside those that fit a filter. */
const MAX_NEWEST = 200
const EVERY = ''

/** Actions as the operator reads them. */
const ACTIONS: Readonly<Record<string, string>> = {
  apply: 'new version',
  rollback: 'rolled back',
  'let-in': 'let in',
  block: 'blocked',
  unblock: 'block ended',
  'list-add': 'added to a list',
  'list-remove': 'removed from a list',
  override: 'limit changed until a date',
  'override-remove': 'override ended',
  reset: 'reset',
  forget: 'forgotten',
}

export function Changes({ query: { by, action } }: { query: Query }) {
  const { has, about, policies } = useShell()
  const filter = { ...(by && { by }), ...(action && { action }) }
  const isFiltered = Object.keys(filter).length > 0
  const path = has('/api/changes') && about.features.changes ? '/api/changes' : undefined
  const found = usePages<Change>(path, { max: 50, ...filter })
  // Beside those that fit, the newest of all: what was changed again cannot be undone.
  const newest = useAsk<PageOf<Change>>(isFiltered ? path : undefined, { max: MAX_NEWEST })
  const all = isFiltered ? (newest.answer?.entries ?? []) : (found.entries ?? [])
  const people = usePeople([...all, ...(found.entries ?? [])], by)
  const move = (part: Readonly<Record<string, string | undefined>>) => goWith('changes', { by, action, ...part })
  const limiters = policies?.documents.map(({ limiter }) => limiter) ?? []
  const documents = useDocuments(has('/api/versions') ? limiters : [])
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
        about="Who changed what, and whether it did harm: the refusals of a policy before and after its document changed."
      />
      {has('/api/figures/history') ? (
        <Section title="Refusals in the last hour">
          <PastCurves range={{ step: 'minute', ms: 60 * MINUTE_MS }} />
        </Section>
      ) : (
        <Notice>This console is of a version without figures: refusals before and after a change are not known.</Notice>
      )}
      <Section title="Log">
        <div class="filters">
          <Choice
            label="By"
            value={by ?? EVERY}
            of={[[EVERY, 'everyone'], ...people.map((name) => [name, name] as const)]}
            set={(name) => move({ by: name || undefined })}
          />
          <Choice
            label="Action"
            value={action ?? EVERY}
            of={[[EVERY, 'every action'], ...actionsWith(action)]}
            set={(name) => move({ action: name || undefined })}
          />
        </div>
        <Failure of={found} />
        <ChangeTable
          changes={found.entries ?? (found.error ? [] : undefined)}
          all={all}
          empty={found.error ? 'The changes are not known.' : isFiltered ? 'No change fits.' : 'No change is logged.'}
          documents={documents}
        />
        <More next={found.next} />
      </Section>
      {has('/api/versions') && limiters.length > 0 && (
        <Section
          title="Versions of documents"
          aside={<span class="muted">{by ? `by ${by}, of the last twenty` : 'the last twenty'}</span>}
        >
          <Versions limiters={limiters} by={by} />
        </Section>
      )}
    </>
  )
}

/** Those who have made changes, as far as these pages show. */
function usePeople(changes: readonly Change[], chosen: string | undefined): readonly string[] {
  const known = useRef(new Set<string>())
  for (const by of [...changes.map((change) => change.by), chosen]) if (by) known.current.add(by)
  return [...known.current].sort()
}

/** The actions that can be chosen, also one that only a link names. */
function actionsWith(chosen: string | undefined): readonly (readonly [string, string])[] {
  const isOther = chosen !== undefined && !Object.hasOwn(ACTIONS, chosen)
  return [...Object.entries(ACTIONS), ...(isOther ? [[chosen, chosen] as const] : [])]
}

type KnownVersion = Version & DocumentChange

/** The versions of all documents that have any, each with the time between the ones beside it. */
function useDocuments(limiters: readonly string[]): readonly KnownVersion[] {
  const names = JSON.stringify(limiters)
  const [known, setKnown] = useState<readonly KnownVersion[]>([])
  const asks = useAsked(EVERY_MS)
  // Each of `asks` is one more request.
  useEffect(() => {
    let isOver = false
    const all = (JSON.parse(names) as string[]).map(async (limiter): Promise<KnownVersion[]> => {
      const { versions } = await ask<VersionsAnswer>('/api/versions', { limiter }).catch(() => ({ versions: [] }))
      return versions.map((version, i) => ({
        ...version,
        limiter,
        since: versions[i + 1]?.at ?? 0,
        until: versions[i - 1]?.at ?? Number.MAX_SAFE_INTEGER,
      }))
    })
    void Promise.all(all).then((versions) => isOver || setKnown(versions.flat()))
    return () => {
      isOver = true
    }
  }, [names, asks])
  return known
}

/** The version that a change has saved. Its entry names the document, and a console the limiter: the time tells which one it is. */
function versionOf({ at, after }: Change, documents: readonly KnownVersion[]): KnownVersion | undefined {
  const { version } = (after ?? {}) as { readonly version?: number }
  return documents.find((each) => each.version === version && Math.abs(each.at - at) < MINUTE_MS)
}

interface ChangeTableProps {
  readonly changes: readonly Change[] | undefined
  /** The newest of all, whatever the filter. */
  readonly all: readonly Change[]
  readonly empty: string
  readonly documents: readonly KnownVersion[]
}

function ChangeTable({ changes, all, empty, documents }: ChangeTableProps) {
  const { mayAct, open } = useShell()
  const undo = useUndo(documents)
  // Before the first version, there is nothing to compare with.
  const later = (changes ?? [])
    .flatMap((change) => versionOf(change, documents) ?? [])
    .filter(({ version }) => version > 1)
  const compared = later.slice(0, MAX_COMPARED)
  return (
    <Table
      name="Changes"
      rows={changes}
      empty={empty}
      keyOf={({ number }) => number}
      columns={[
        { title: 'When', show: ({ at }) => <Time at={at} /> },
        {
          title: 'By',
          show: ({ by }) => (by === '' ? <span class="muted short">unknown</span> : <Operator name={by} />),
        },
        { title: 'Action', show: (change) => <Action of={change} /> },
        {
          title: 'Client',
          show: ({ kind, value, isErased }) =>
            isErased ? (
              <span class="muted">erased</span>
            ) : (
              kind !== undefined && value !== undefined && <Who {...{ kind, value }} />
            ),
        },
        {
          title: 'What changed',
          show: (change) => {
            const version = versionOf(change, documents)
            const reason = reasonIn(change.after) ?? reasonIn(change.before)
            return (
              <div class="what-changed">
                {reason !== undefined && (
                  <p class="muted">
                    <Text>{reason}</Text>
                  </p>
                )}
                {version && compared.includes(version) && <Effects of={version} />}
                <Details of={change} version={version} />
              </div>
            )
          },
        },
        mayAct && {
          title: 'Undo',
          isHidden: true,
          show: (change) => {
            const dialog = isLast(change, all) && undo(change)
            return (
              dialog && (
                <button type="button" class="quiet" onClick={() => open(dialog)}>
                  Undo
                </button>
              )
            )
          },
        },
      ]}
    />
  )
}

/** What an action changes of a client. Letting in and forgetting end blocks, too. */
const CHANGED: Readonly<Record<string, string>> = {
  block: 'block',
  unblock: 'block',
  'let-in': 'block',
  forget: 'block',
  override: 'override',
  'override-remove': 'override',
  'list-add': 'list',
  'list-remove': 'list',
}

/** Whether no later change of the same was made, which an undo would take back, too. Not known of one that is older than all of these. */
function isLast(change: Change, changes: readonly Change[]): boolean {
  if (!changes.some(({ number }) => number <= change.number)) return false
  const what = CHANGED[change.action]
  const isSame = ({ action, kind, value, policy, state }: Change) =>
    state !== 'failed' &&
    CHANGED[action] === what &&
    kind === change.kind &&
    value === change.value &&
    (policy === change.policy || policy === undefined || what === 'list')
  return what === undefined || !changes.some((later) => later.number > change.number && isSame(later))
}

const reasonIn = (state: unknown): string | undefined => (state as { readonly reason?: string } | undefined)?.reason

function Action({ of: { action, policy, state } }: { of: Change }) {
  return (
    <>
      <Text>{Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : action}</Text>{' '}
      {policy !== undefined && (
        <span class="muted">
          of <Text>{policy}</Text>{' '}
        </span>
      )}
      {state !== 'done' && <Chip tone="warn">{state === 'failed' ? 'failed' : 'not known whether it was made'}</Chip>}
    </>
  )
}

function Details({ of, version }: { of: Change; version: KnownVersion | undefined }) {
  const { action, at, before, after } = of
  const { until } = (before ?? {}) as Undoable
  const lines = action === 'block' ? differenceOf({ until }, blockFrom(at, after)) : differenceOf(before, after)
  return <Difference lines={[...lines, ...versionsText(of), ...(version?.differences ?? [])]} />
}

/** Of a document: its versions before and after. */
function versionsText({ before, after }: Change): string[] {
  const [was, is] = [before, after] as ({ document?: string; version?: number; sameAs?: number } | undefined)[]
  if (is?.document === undefined) return []
  return [`version ${was?.version} → ${is.version}${is.sameAs === undefined ? '' : `, the same as ${is.sameAs}`}`]
}

interface Undoable {
  readonly list?: string
  readonly version?: number
  readonly until?: number
  readonly expiresAt?: number
  readonly limits?: readonly Readonly<Record<string, unknown>>[]
}

/** The dialog that takes a change back. Undefined for one that cannot be, or has ended. */
function useUndo(documents: readonly KnownVersion[]): (change: Change) => ComponentChildren {
  const { policies, has } = useShell()
  return (change) => {
    const { action, policy, kind, value, state } = change
    const [was, is] = [change.before, change.after] as (Undoable | undefined)[]
    if (state !== 'done' || (is?.until ?? is?.expiresAt ?? Number.POSITIVE_INFINITY) < Date.now()) return undefined
    const version = versionOf(change, documents)
    // Of an earlier version, it would take back the later ones, too.
    if (version && was?.version && version.until > Date.now() && has('/api/rollback'))
      return <RollbackDialog limiter={version.limiter} version={was.version} />
    if (kind === undefined || value === undefined) return undefined
    if (action === 'block') return <UnblockDialog block={{ kind, value, ...(policy !== undefined && { policy }) }} />
    if (action === 'list-add' && is?.list !== undefined) return <UnlistDialog list={is.list} entry={{ kind, value }} />
    const limiter = policies?.documents.find((each) => each.policies.some(({ name }) => policyIn(name) === policy))
    if (action !== 'override' || policy === undefined || !limiter) return undefined
    return (
      <EndOverrideDialog
        limiter={limiter.limiter}
        override={{ policy, kind, value, limits: is?.limits ?? [] }}
        isCounted
      />
    )
  }
}
