import type { ComponentChildren } from 'preact'
import type { Refusal } from '../answers.js'
import { Chip, Text, Time, WhoOf } from './basics.js'
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

export const reasonText = (reason: string): string => (Object.hasOwn(REASONS, reason) ? (REASONS[reason] as string) : reason)

export function Reason({ of }: { of: string }) {
  return <Chip tone={of === 'banned' || of === 'blocked' || of === 'denied' ? 'bad' : 'warn'}>{reasonText(of)}</Chip>
}

interface RefusalTableProps {
  readonly name: string
  readonly refusals: readonly Refusal[] | undefined
  readonly empty: ComponentChildren
  /** Whether the client is known from the page. */
  readonly isOfOne?: boolean
}

export function RefusalTable({ name, refusals, empty, isOfOne }: RefusalTableProps) {
  const numbered = refusals?.map((refusal, i) => ({ ...refusal, i }))
  return (
    <Table
      name={name}
      rows={numbered}
      empty={empty}
      keyOf={({ i }) => i}
      columns={[
        { title: 'When', show: ({ at }) => <Time at={at} /> },
        !isOfOne && {
          title: 'Client',
          show: ({ identities }) =>
            identities.map((text, i) => (
              <span key={text}>
                {i > 0 && ', '}
                <WhoOf text={text} />
              </span>
            )),
        },
        { title: 'Reason', show: ({ reason }) => <Reason of={reason} /> },
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text> },
        { title: 'Limit', show: ({ limit }) => (limit === undefined ? '' : <Text>{limit}</Text>) },
        { title: 'Path', show: ({ path }) => path !== undefined && <code>{path}</code> },
      ]}
    />
  )
}
