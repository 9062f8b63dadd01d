import { useState } from 'preact/hooks'
import type { Identity, IdentityAnswer, Limit, LimitsLeft, OverridePlan, SavedOverride } from '../answers.js'
import { ask, type Refused, sentence } from '../api.js'
import { useShell } from '../context.js'
import { isByLimit } from '../pages/verdict.js'
import { Notice, Text, Time, valueText, WhoText } from '../parts/basics.js'
import { ActionDialog, Choice, TextField } from '../parts/dialog.js'
import { changedText, isBucket, limitText, perText, policyIn } from '../parts/format.js'
import { type KnownWhy, Stays } from './stays.js'
import { usePlan } from './use-plan.js'

/** A limit of a document that an override can change. */
interface Place {
  readonly limiter: string
  readonly policy: string
  readonly limit: Limit
  readonly isOnly: boolean
}

/** The limits of documents that count this kind. A policy with tiers is one policy. */
function usePlaces(kind: string): readonly Place[] {
  const { policies } = useShell()
  return (policies?.documents ?? []).flatMap(({ limiter, policies: all }) =>
    all.flatMap(({ name, limits }) =>
      limits
        .filter((limit) => limit.kind === undefined || limit.kind === kind)
        .map((limit) => ({ limiter, policy: policyIn(name), limit, isOnly: limits.length === 1 })),
    ),
  )
}

interface OverrideProps {
  readonly identity: Identity
  /** What refuses it now. */
  readonly full: readonly LimitsLeft[]
  /** Those that it has. */
  readonly overrides: IdentityAnswer['overrides']
  readonly known: KnownWhy
}

/** Changes a limit of one client until a date. The plan stands in the dialog, before anything is changed. */
export function OverrideDialog({ identity, full, overrides = [], known }: OverrideProps) {
  const places = usePlaces(identity.kind)
  const isFull = (each: Place) => full.some(({ limiter, policy }) => limiter === each.limiter && policy === each.policy)
  const [index, setIndex] = useState(() => Math.max(places.findIndex(isFull), 0))
  const place = places[index]
  const ownOf = (each: Place | undefined) =>
    overrides.find(({ limiter, policy }) => limiter === each?.limiter && policy === each.policy)
  const own = ownOf(place)
  const [numbers, setNumbers] = useState(() => twice(place, own))
  const [given, setUntil] = useState<string>()
  const [friday] = useState(() => nextFriday(new Date()))
  // A date in force stays as it is, to the second, unless another one is chosen.
  const until = given === undefined ? new Date(own?.until ?? friday) : new Date(given)
  const [reason, setReason] = useState('')
  const body = place && bodyOf(place, identity, numbers, until, reason)
  const { plan, failure } = usePlan<OverridePlan>('/api/override/plan', body)
  return (
    <ActionDialog
      title="Raise a limit until a date"
      what={
        <p>
          <WhoText kind={identity.kind} value={valueText(identity)} /> gets limits of its own, beside the document of
          policies. At the date, everyone's limit counts again.
        </p>
      }
      submit="Apply"
      isReady={plan?.canSave === true && plan.changes.length > 0}
      run={async () => {
        await ask('/api/override', { ...body, expected: plan?.version })
        return `${identity.kind} ${valueText(identity)} has its own limit of ${place?.policy}.`
      }}
    >
      {!place && (
        <Notice>
          No document of policies has a limit that counts {identity.kind}. Limits in code have no overrides: change the
          code.
        </Notice>
      )}
      {place && (
        <>
          <Choice
            label="Limit"
            value={String(index)}
            of={places.map((each, i) => [String(i), nameOf(each)] as const)}
            set={(value) => {
              setIndex(Number(value))
              setNumbers(twice(places[Number(value)], ownOf(places[Number(value)])))
            }}
          />
          {fieldsOf(place.limit).map(({ field, label }) => (
            <TextField
              key={field}
              label={label}
              type="number"
              value={numbers[field] ?? ''}
              set={(value) => setNumbers({ ...numbers, [field]: value })}
            />
          ))}
          <TextField label="Until" type="datetime-local" value={given ?? inputTime(until)} set={setUntil} />
          <TextField label="Reason" value={reason} set={setReason} />
          <Plan plan={plan} failure={failure} />
          <Stays of={known} left={{ isLeft: (limits) => !isOf(place, limits) }} />
        </>
      )}
    </ActionDialog>
  )
}

/** Whether a raised limit is what refuses. */
const isOf = (place: Place, limits: LimitsLeft): boolean =>
  isByLimit(limits) && limits.limiter === place.limiter && limits.policy === place.policy

const nameOf = ({ limiter, policy, limit }: Place) => `${limiter} › ${limit.name ?? policy}: ${limitText(limit)}`

/** The fields of a limit that an override changes, as documents name them. */
type Numbers = Readonly<Record<string, string>>

/** A bucket has a capacity beside its rate: both are shown, and both are changed. */
function fieldsOf(limit: Limit): { field: string; label: string; value: number | null | undefined }[] {
  const { algorithm, windowMs, capacity } = limit
  const per = typeof windowMs === 'number' ? ` per ${perText(windowMs)}` : ''
  const rates: Readonly<Record<string, string>> = { tokenBucket: 'refill', leakyBucket: 'leak' }
  const field = rates[algorithm] ?? 'limit'
  const rate = { field, label: `New ${field}${per}`, value: limit.limit }
  if (!isBucket(algorithm)) return [rate]
  const size = algorithm === 'gcra' ? 'burst' : 'capacity'
  return [{ field: size, label: `New ${size}`, value: capacity }, rate]
}

/** What is proposed: twice of what the client has, be it by an override. */
function twice(place: Place | undefined, own: SavedOverride | undefined): Numbers {
  const fields = place ? fieldsOf(place.limit) : []
  const [changed] = place && own ? own.limits.filter(({ name }) => name === undefined || name === ownName(place)) : []
  return Object.fromEntries(
    fields.map(({ field, value }) => [field, String((Number(changed?.[field]) || (value ?? 10)) * 2)]),
  )
}

/** Headers name a limit by its policy and its own name. */
function ownName({ policy, limit: { name } }: Place): string | undefined {
  return name?.startsWith(`${policy}-`) ? name.slice(policy.length + 1) : name
}

/** Undefined while a field is not filled in. */
function bodyOf(place: Place, identity: Identity, numbers: Numbers, until: Date, reason: string) {
  const { limiter, policy, limit, isOnly } = place
  const end = until.getTime()
  const given = fieldsOf(limit).map(({ field }) => [field, Number(numbers[field] || Number.NaN)] as const)
  if (!Number.isFinite(end) || !given.every(([, number]) => Number.isInteger(number))) return undefined
  const name = ownName(place)
  const changed = { ...(!isOnly && name !== undefined && { name }), ...Object.fromEntries(given) }
  return { limiter, policy, identity, limits: [changed], until: end, ...(reason && { reason }) }
}

function Plan({ plan, failure }: { plan: OverridePlan | undefined; failure: Refused | undefined }) {
  if (failure) return <Notice tone="bad">{failure.message}</Notice>
  if (!plan) return <Notice>Working out who is affected.</Notice>
  return (
    <Notice>
      <p>
        For <WhoText {...plan} /> until <Time at={plan.until} />:
      </p>
      {plan.before && (
        <p>
          This replaces its own {plan.before.limits.map(changedText).join('; ')}
          {plan.before.until !== undefined && (
            <>
              , until <Time at={plan.before.until} />
            </>
          )}
          .
        </p>
      )}
      <ul>
        {plan.changes.map(({ tier, limit, before, after, isKept }) => (
          <li key={`${tier} ${limit}`}>
            <Text>{tier === undefined ? limit : `${limit} (tier ${tier})`}</Text>: {plan.before && 'for others '}
            {limitText(before)} {plan.before ? 'and for it' : 'becomes'} <strong>{limitText(after)}</strong>
            {isKept ? '; what it has used counts' : '; it begins anew'}
          </li>
        ))}
      </ul>
      {plan.changes.length === 0 && <p>These are the numbers that it has: nothing changes.</p>}
      {plan.advice.map((advice) => (
        <p key={advice}>{sentence(advice)}</p>
      ))}
      {!plan.canSave && (
        <>
          <p>This document cannot be changed from here. These lines have the same effect in it:</p>
          <pre>{plan.lines}</pre>
        </>
      )}
    </Notice>
  )
}

/** The end of the next Friday that is at least a few hours away. */
function nextFriday(now: Date): Date {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + ((5 - now.getDay() + 7) % 7), 23, 59)
  return day.getTime() - now.getTime() < 6 * 3_600_000 ? new Date(day.getTime() + 7 * 86_400_000) : day
}

/** For `<input type="datetime-local">`, which has the zone of the browser. */
function inputTime(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
