import { EndOverrideDialog } from '../actions/actions.js'
import type { Limit, SavedOverride } from '../answers.js'
import { useShell } from '../context.js'
import { Chip, Text, Time, Who } from './basics.js'
import { changedText, perText, policyIn, whole } from './format.js'
import { Table } from './table.js'

interface OverrideTableProps {
  readonly name: string
  readonly overrides: readonly (SavedOverride & { readonly limiter: string })[] | undefined
  /** Whether the client is known from the page. */
  readonly isOfOne?: boolean
}

/** Fields of an override that a document has as the rate of a limit; the others are of a bucket. */
const RATES: readonly string[] = ['limit', 'refill', 'leak']
const SIZES: readonly string[] = ['capacity', 'burst']

/** Its changes, with a warning where the policy gives everyone more: its document may have changed after it. */
function Limits({ of: { limiter, policy, limits } }: { of: SavedOverride & { readonly limiter: string } }) {
  const { policies } = useShell()
  const document = policies?.documents.find((each) => each.limiter === limiter)
  const all = document?.policies.filter(({ name }) => policyIn(name) === policy) ?? []
  const lower = limits.flatMap((changed) => {
    const own = all.flatMap((each) =>
      each.limits.filter(
        ({ name }) => changed.name === undefined || name === changed.name || name === `${policy}-${changed.name}`,
      ),
    )
    // Numbers of two windows cannot be compared.
    if (own.length === 0 || 'window' in changed || 'every' in changed) return []
    return Object.entries(changed).flatMap(([field, value]) => {
      const isRate = RATES.includes(field)
      if (typeof value !== 'number' || !(isRate || SIZES.includes(field))) return []
      // Tiers may differ, and that of the client is not known.
      const [least] = own.sort((a, b) => numberOf(a, isRate) - numberOf(b, isRate)) as [Limit]
      const number = numberOf(least, isRate)
      const per = isRate && least.windowMs !== null ? ` per ${perText(least.windowMs)}` : isRate ? '' : ' at once'
      return value < number && Number.isFinite(number) ? [`${whole(value)} beside ${whole(number)}${per}`] : []
    })
  })
  return (
    <>
      {limits.map(changedText).join('; ')}
      {lower.length > 0 && (
        <>
          {' '}
          <Chip tone="warn">lower than the policy's limit now: {lower.join(', ')}</Chip>
        </>
      )}
    </>
  )
}

const numberOf = ({ limit, capacity }: Limit, isRate: boolean): number =>
  (isRate ? limit : capacity) ?? Number.POSITIVE_INFINITY

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
        { title: 'Limits', show: (override) => <Limits of={override} /> },
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
