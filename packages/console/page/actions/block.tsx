import { useState } from 'preact/hooks'
import type { BlockPlan, Identity } from '../answers.js'
import { ask, type Refused } from '../api.js'
import { useShell } from '../context.js'
import { Notice, Text, Time, valueText, WhoText } from '../parts/basics.js'
import { ActionDialog, Choice, TextField } from '../parts/dialog.js'
import { counted, whole } from '../parts/format.js'
import { KindField } from '../parts/kinds.js'
import { spanText } from '../parts/refusals.js'
import { usePlan } from './use-plan.js'

const MINUTE_MS = 60_000
const DURATIONS = [
  ['10m', '10 minutes', 10 * MINUTE_MS],
  ['1h', '1 hour', 60 * MINUTE_MS],
  ['1d', '1 day', 1440 * MINUTE_MS],
  ['7d', '7 days', 7 * 1440 * MINUTE_MS],
  ['30d', '30 days', 30 * 1440 * MINUTE_MS],
  ['forever', 'until it is ended', undefined],
] as const

const EVERY = ''

/** The names of policies that a block can be of: limiters, and those that decide by documents. */
function usePolicyNames(): readonly string[] {
  const { policies } = useShell()
  if (!policies) return []
  return [...new Set([...policies.limiters.map(({ name }) => name), ...policies.documents.map((each) => each.limiter)])]
}

/** Blocks a client, which is asked for where none is given. The effect stands in the dialog, before anything is changed. */
export function BlockDialog({ identity }: { identity?: Identity }) {
  const { has } = useShell()
  const [given, setGiven] = useState<Identity>(identity ?? { kind: 'ip', value: '' })
  const [duration, setDuration] = useState<string>('1h')
  const [policy, setPolicy] = useState(EVERY)
  const [reason, setReason] = useState('')
  const names = usePolicyNames()
  const isGiven = valueText(given) !== ''
  const of = { identity: given, ...(policy !== EVERY && { policy }) }
  const { plan, failure } = usePlan<BlockPlan>('/api/block/plan', isGiven && has('/api/block/plan') ? of : undefined)
  return (
    <ActionDialog
      title="Block a client"
      what={
        <p>
          {identity ? <WhoText kind={identity.kind} value={valueText(identity)} /> : 'It'} is refused whatever it has
          left.{!identity && ' A network of addresses is written 192.0.2.0/24.'}
        </p>
      }
      submit="Block"
      isDangerous
      isReady={isGiven && !failure}
      isWarned={plan?.isOwn === true}
      run={async (confirmed) => {
        await ask('/api/block', {
          ...of,
          for: duration,
          ...(reason && { reason }),
          ...(confirmed && { confirmed }),
        })
        return `${given.kind} ${valueText(given)} is blocked.`
      }}
    >
      {!identity && <KindField identity={given} set={setGiven} />}
      <Choice label="For" value={duration} of={DURATIONS.map(([value, text]) => [value, text])} set={setDuration} />
      <Choice
        label="Refused by"
        value={policy}
        of={[[EVERY, 'every policy of this store'], ...names.map((name) => [name, name] as const)]}
        set={setPolicy}
      />
      <TextField label="Reason" value={reason} set={setReason} hint="Shown in verdicts and here. May be empty." />
      {isGiven && <Effect {...{ plan, failure, policy, duration }} />}
    </ActionDialog>
  )
}

interface EffectProps {
  readonly plan: BlockPlan | undefined
  readonly failure: Refused | undefined
  readonly policy: string
  readonly duration: string
}

/** Whom a block refuses and until when, and whom it does not. */
function Effect({ plan, failure, policy, duration }: EffectProps) {
  const { has } = useShell()
  if (failure) return <Notice tone="bad">{failure.message}</Notice>
  if (!plan) return has('/api/block/plan') ? <Notice>Working out who is affected.</Notice> : null
  const { identity, before, isOwn, ownAddress, allowedBy, allowedInside } = plan
  const ms = DURATIONS.find(([value]) => value === duration)?.[2]
  const isNetwork = identity.kind === 'ip' && identity.value.includes('/')
  return (
    <>
      {isOwn && (
        <Notice tone="warn">
          <strong>You block yourself</strong>: your own address is {isNetwork ? 'in this network' : 'this one'}, so that
          your requests are refused, too.
        </Notice>
      )}
      <Notice>
        <p>
          Within a second, every process refuses{' '}
          {isNetwork ? (
            <>
              each address in <WhoText {...identity} />
            </>
          ) : (
            <WhoText {...identity} />
          )}
          , by {policy === EVERY ? 'every policy' : <Text>{policy}</Text>},{' '}
          {ms === undefined ? (
            'until the block is ended'
          ) : (
            <>
              until <Time at={Date.now() + ms} />
            </>
          )}
          .
        </p>
        <ul>
          {before && (
            <li>
              It replaces its {before.ban ? 'ban' : 'block'} until <Time at={before.until} />
              {before.reason && (
                <>
                  : <Text>{before.reason}</Text>
                </>
              )}
              .
            </li>
          )}
          {isNetwork && !isOwn && ownAddress !== undefined && (
            <li>
              You (<Text>{ownAddress}</Text>) are not in it.
            </li>
          )}
          <Touched of={plan} isNetwork={isNetwork} />
          {allowedBy.map(({ limiter, policy, list }) => (
            <li key={`${limiter} ${policy} ${list}`}>
              <strong>
                <Text>{policy === undefined ? limiter : `${limiter} › ${policy}`}</Text> lets it in all the same
              </strong>
              , by the list <Text>{list}</Text>.
            </li>
          ))}
          {allowedInside.map(({ list, entries }) => (
            <li key={list}>
              {counted(entries, 'entry', 'entries')} of the list <Text>{list}</Text> in this network{' '}
              {entries === 1 ? 'is' : 'are'} let in all the same.
            </li>
          ))}
          <li>
            Not touched: requests that are already admitted, limits, lists,{' '}
            {isNetwork ? 'users and keys of these addresses' : 'its other identities, such as its user or its address'}
            {policy !== EVERY && ', other policies'}, and clients on an allow list.
          </li>
        </ul>
      </Notice>
    </>
  )
}

/** The clients that are seen of late, and would be refused. */
function Touched({ of: { refused, traffic }, isNetwork }: { of: BlockPlan; isNetwork: boolean }) {
  const span = spanText({ since: refused.knownSince })
  const clients = (count: number) => (isNetwork ? ` of ${counted(count, 'client')} in it` : '')
  return (
    <>
      {traffic && (
        <li>
          {traffic.count === 0
            ? 'None of the 50 clients with the most decisions in the last hour would be refused.'
            : `In the last hour: at least ${counted(traffic.count, 'decision')}${clients(traffic.clients)}, ${whole(traffic.refused)} of them refused.`}
        </li>
      )}
      <li>
        {refused.count === 0
          ? `No refusal of it is recorded in ${span}`
          : `In ${span}: ${counted(refused.count, 'recorded refusal')}${clients(refused.clients)}`}
        {refused.knownSince !== undefined && '; earlier ones are not known'}.
      </li>
    </>
  )
}
