import { EndOverrideDialog } from '../actions/actions.js'
import type { SavedOverride } from '../answers.js'
import { useShell } from '../context.js'
import { Text, Time, Who } from './basics.js'
import { changedText } from './format.js'
import { Table } from './table.js'

interface OverrideTableProps {
  readonly name: string
  readonly overrides: readonly (SavedOverride & { readonly limiter: string })[] | undefined
  /** Whether the client is known from the page. */
  readonly isOfOne?: boolean
}

/** Limits of single clients until a date, each with an act that ends it. */
export function OverrideTable({ name, overrides, isOfOne }: OverrideTableProps) {
  const { mayAct, open, has } = useShell()
  return (
    <Table
      name={name}
      rows={overrides}
      empty="They are not known."
      keyOf={({ limiter, policy, kind, value }) => `${limiter} ${policy} ${kind}=${value}`}
      columns={[
        !isOfOne && {
          title: 'Client',
          show: (override) => <Who {...override} />,
          sort: ({ kind, value }) => `${kind} ${value}`,
        },
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
        { title: 'Limits', show: ({ limits }) => limits.map(changedText).join('; ') },
        {
          title: 'Until',
          isNumber: true,
          sort: ({ until }) => until,
          show: ({ until }) => (until === undefined ? 'it is ended' : <Time at={until} />),
        },
        {
          title: 'By',
          show: ({ by }) => (by === '' ? <span class="muted">unknown</span> : <Text>{by}</Text>),
          sort: ({ by }) => by,
        },
        { title: 'Since', show: ({ at }) => <Time at={at} />, sort: ({ at }) => at },
        { title: 'Reason', show: ({ reason }) => <Text>{reason}</Text> },
        mayAct &&
          has('/api/override/remove') && {
            title: 'Action',
            isHidden: true,
            show: (override) => (
              <button
                type="button"
                class="quiet"
                onClick={() => open(<EndOverrideDialog limiter={override.limiter} override={override} />)}
              >
                End
              </button>
            ),
          },
      ]}
    />
  )
}
