import type { ComponentChildren } from 'preact'
import type { FiguresAnswer } from '../../src/figures/answers.js'
import type { Refusal } from '../answers.js'
import { useFigures } from '../live/figures.js'
import { Chip, Text, Time, WhoOf } from './basics.js'
import { duration, whole } from './format.js'
import { Table } from './table.js'

/** Reasons as the operator reads them. */
const REASONS: Readonly<Record<string, string>> = {
  limited: 'limit used up',
  banned: 'banned',
  blocked: 'blocked',
  denied: 'on a deny list',
  impossible: 'can never fit',
  unavailable: 'store away',
  'too-large': 'too large',
}

export const reasonText = (reason: string): string =>
  Object.hasOwn(REASONS, reason) ? (REASONS[reason] as string) : reason

/** How a decision ended, as the API of traffic has it. */
export function outcomeText(reason: string): string {
  if (reason === 'left') return 'client left'
  if (reason === 'refused') return 'every refusal'
  const [, reported] = /^reported:(.*)$/s.exec(reason) ?? []
  return reported === undefined ? reasonText(reason) : `only reported: ${reasonText(reported)}`
}

/** The span of which all refusals are known: 15 minutes, or less where processes keep no more. */
interface Known {
  /** Before it, in ms since 1970, newer refusals have replaced earlier ones. */
  readonly since?: number | undefined
  /** When that was asked, in ms since 1970. */
  readonly now?: number | undefined
}

/** `the last 25 s`. */
export const spanText = ({ since, now = Date.now() }: Known): string =>
  since === undefined ? 'the last 15 minutes' : `the last ${duration(Math.max(now - since, 1000))}`

/** Beside the title of refusals. */
export function KnownSpan(known: Known) {
  return (
    <span class="muted">
      of {spanText(known)}
      {known.since !== undefined && ': newer refusals have replaced earlier ones'}
    </span>
  )
}

/** In place of refusals: nothing recorded is not the same as none. */
export function NotRecorded({ isOfOne, ...known }: Known & { readonly isOfOne?: boolean }) {
  const { latest } = useFigures()
  const names = latest ? withoutRecords(latest) : []
  const ofOne = isOfOne && <p>What was admitted is not kept for single clients.</p>
  if (names.length > 0) {
    return (
      <>
        Not recorded: call <code>recordRefusals(store)</code> in {names.join(', ')}.{ofOne}
      </>
    )
  }
  if (known.since !== undefined) {
    return (
      <>
        No refusal of {spanText(known)} is recorded. Earlier ones are not known: a process keeps its last 200 refusals.
        {ofOne}
      </>
    )
  }
  // A store in memory has no other process.
  if (latest?.from === 'process') return <>No refusal in the last 15 minutes, since this console began.{ofOne}</>
  return (
    <>
      No refusal of the last 15 minutes is recorded. Processes without a console record theirs once they call{' '}
      <code>recordRefusals(store)</code>.{ofOne}
    </>
  )
}

/** Processes that have refused requests, and record none of them. */
export function withoutRecords({ processes }: FiguresAnswer): readonly string[] {
  const silent = processes.filter(({ recordsRefusals, totals }) => recordsRefusals === false && totals.refused > 0)
  const names = silent.map(({ host, pid }) => `${host} (pid ${pid})`)
  return names.length > SHOWN_NAMES ? [...names.slice(0, SHOWN_NAMES), `${names.length - SHOWN_NAMES} others`] : names
}

const SHOWN_NAMES = 5

function Reason({ of }: { of: string }) {
  return <Chip tone={of === 'banned' || of === 'blocked' || of === 'denied' ? 'bad' : 'warn'}>{reasonText(of)}</Chip>
}

interface RefusalTableProps {
  readonly name: string
  readonly refusals: readonly Refusal[] | undefined
  readonly empty: ComponentChildren
  /** The client of the page, as text: only others of its requests are named. */
  readonly of?: string
  /** Rows. @default 30 */
  readonly max?: number
}

/** Refusals that differ in their time alone, together. The newest first, as they are given. */
function alike(refusals: readonly Refusal[]) {
  const rows = new Map<string, Refusal & { count: number; key: string }>()
  for (const refusal of refusals) {
    const { policy, limit, reason, path, identities } = refusal
    const key = JSON.stringify([policy, limit, reason, path, identities])
    const known = rows.get(key)
    if (known) known.count++
    else rows.set(key, { ...refusal, count: 1, key })
  }
  return [...rows.values()]
}

export function RefusalTable({ name, refusals, empty, of, max = 30 }: RefusalTableProps) {
  const numbered = refusals && alike(refusals).slice(0, max)
  const shown = ({ identities }: Refusal) => identities.filter((text) => text !== of)
  return (
    <Table
      name={name}
      rows={numbered}
      empty={empty}
      keyOf={({ key }) => key}
      columns={[
        { title: 'Last', show: ({ at }) => <Time at={at} />, sort: ({ at }) => at },
        {
          title: 'Refused',
          isNumber: true,
          show: ({ count }) => (count === 1 ? 'once' : `${whole(count)} ×`),
          sort: ({ count }) => count,
        },
        numbered?.some((row) => shown(row).length > 0) && {
          title: of === undefined ? 'Client' : 'Also of',
          show: (row) =>
            shown(row).map((text, i) => (
              <span key={text}>
                {i > 0 && ', '}
                <WhoOf text={text} />
              </span>
            )),
        },
        { title: 'Reason', show: ({ reason }) => <Reason of={reason} />, sort: ({ reason }) => reasonText(reason) },
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
        {
          title: 'Limit',
          show: ({ limit }) => (limit === undefined ? '' : <Text>{limit}</Text>),
          sort: ({ limit }) => limit,
        },
        { title: 'Path', show: ({ path }) => path !== undefined && <code>{path}</code>, sort: ({ path }) => path },
      ]}
    />
  )
}
