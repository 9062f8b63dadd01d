import { UnblockDialog } from '../actions/actions.js'
import type { Block } from '../answers.js'
import { useShell } from '../context.js'
import { Chip, Operator, Text, Time, Who } from './basics.js'
import { counted, whole } from './format.js'
import { Table } from './table.js'

interface BlockTableProps {
  readonly name: string
  readonly blocks: readonly Block[] | undefined
  /** Whether the client is known from the page. */
  readonly isOfOne?: boolean
  readonly empty?: string
}

export function BlockTable({ name, blocks, isOfOne, empty = 'None.' }: BlockTableProps) {
  const { mayAct, open } = useShell()
  return (
    <Table
      name={name}
      rows={blocks}
      empty={empty}
      keyOf={({ kind, value, policy }) => `${policy} ${kind}=${value}`}
      columns={[
        !isOfOne && {
          title: 'Client',
          show: (block) => <Who {...block} />,
          sort: ({ kind, value }) => `${kind} ${value}`,
        },
        {
          title: 'Kind',
          show: ({ ban }) => (
            <>
              <Chip tone="bad">{ban ? `ban, rung ${ban.rung}` : 'block'}</Chip>
              {ban && <span class="muted"> {counted(ban.strikes, 'strike')}</span>}
            </>
          ),
          sort: ({ ban }) => ban?.strikes,
        },
        { title: 'Policy', show: ({ policy = 'every policy' }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
        { title: 'Reason', show: ({ reason }) => <Text>{reason}</Text>, sort: ({ reason }) => reason },
        { title: 'By', show: ({ by }) => by !== undefined && <Operator name={by} />, sort: ({ by }) => by },
        { title: 'Since', isNumber: true, show: ({ since }) => <Time at={since} />, sort: ({ since }) => since },
        { title: 'Until', isNumber: true, show: ({ until }) => <Time at={until} />, sort: ({ until }) => until },
        { title: 'Times', isNumber: true, show: ({ times }) => whole(times), sort: ({ times }) => times },
        mayAct && {
          title: 'Action',
          isHidden: true,
          show: (block) => (
            <button type="button" class="quiet" onClick={() => open(<UnblockDialog block={block} />)}>
              Unblock
            </button>
          ),
        },
      ]}
    />
  )
}
