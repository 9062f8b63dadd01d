import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Block, Identity, LimitsLeft, ListEntry, SavedOverride, WhyAnswer } from '../answers.js'
import { ask, Refused } from '../api.js'
import { useListEffects, useListText, useShell } from '../context.js'
import { isByLimit, type Request, stillRefusing } from '../pages/verdict.js'
import { Text, Time, valueText, WhoText } from '../parts/basics.js'
import { ActionDialog, Choice, TextField } from '../parts/dialog.js'
import { changedText, counted } from '../parts/format.js'
import { KindField } from '../parts/kinds.js'
import { type KnownWhy, Stays } from './stays.js'

const EVERY = ''

const shownOf = (identity: Identity) => <WhoText kind={identity.kind} value={valueText(identity)} />
const textOf = (identity: Identity) => `${identity.kind} ${valueText(identity)}`
const countedOf = ({ kind, value }: { kind: string; value: string }): Identity => ({ kind, value, counted: true })

export function UnblockDialog({ block }: { block: Pick<Block, 'kind' | 'value' | 'policy' | 'ban'> }) {
  return (
    <ActionDialog
      title={block.ban ? 'End this ban' : 'End this block'}
      what={
        <p>
          <WhoText {...block} /> is let in again by {block.policy ? <Text>{block.policy}</Text> : 'every policy'}. Its
          strikes and the rung that led here are forgotten. Limits that are used up, deny lists, and blocks of its
          network stay. Other processes may refuse for another second.
        </p>
      }
      submit="Unblock"
      run={async () => {
        await ask('/api/unblock', {
          identity: countedOf(block),
          ...(block.policy !== undefined && { policy: block.policy }),
        })
        return `${block.kind} ${block.value} is not blocked.`
      }}
    />
  )
}

/** Ends everything that refuses a client now: its blocks, its bans, and what it has used. */
export function LetInDialog({ identity, known, isCounted, request, forLonger }: LetInProps) {
  const { blocks } = known.why
  // The page was asked about all of them together.
  const all = [identity, ...(request.with ?? [])]
  return (
    <ActionDialog
      title="Let this client in"
      what={
        <>
          <p>
            For{' '}
            {all.map((each, i) => (
              <span key={each.kind}>
                {i > 0 && ' and '}
                {shownOf(each)}
              </span>
            ))}
            , this
          </p>
          <ul>
            {blocks.map((block) => (
              <li key={block.policy}>
                ends the {block.ban ? 'ban' : 'block'} of {block.policy ? <Text>{block.policy}</Text> : 'every policy'}{' '}
                until <Time at={block.until} />, with its strikes;
              </li>
            ))}
            {isCounted && <li>forgets what {all.length > 1 ? 'they have' : 'it has'} used of every limit.</li>}
          </ul>
          <p>
            What this ends refuses it again once it has used a limit up. To let it in for longer, raise its limit until
            a date, or add it to a list that allows.
          </p>
          <div class="actions">{forLonger}</div>
          <p>Other processes may refuse for another second. Afterwards, it is checked again.</p>
          <Stays
            of={known}
            left={{ blocks: false, isLeft: (limits) => !isByLimit(limits) || isNeverAdmitted(limits) }}
          />
        </>
      }
      submit="Let in now"
      run={async () => {
        for (const block of blocks) {
          const { policy } = block
          await ask('/api/unblock', { identity: countedOf(block), ...(policy !== undefined && { policy }) })
        }
        if (isCounted) for (const each of all) await ask('/api/reset', { identity: each, letIn: true })
        const refusing = stillRefusing(await ask<WhyAnswer>('/api/why', { identity, ...request }))
        return refusing === ''
          ? `${textOf(identity)} is let in, until it has used a limit up again.`
          : `${textOf(identity)} is still refused, by ${refusing}. Its page has the links.`
      }}
    />
  )
}

/** A reset gives units back: a cost above the limit does not fit then, either. */
const isNeverAdmitted = ({ reason }: LimitsLeft): boolean => reason === 'impossible'

interface LetInProps {
  readonly identity: Identity
  readonly known: KnownWhy
  /** Buttons of what lets it in for longer. */
  readonly forLonger: ComponentChildren
  /** Whether a limit that the page shows counts it. */
  readonly isCounted: boolean
  readonly request: Request
}

interface ResetProps {
  readonly identity: Identity
  readonly known: KnownWhy
  readonly limiters: readonly string[]
}

export function ResetDialog({ identity, known, limiters }: ResetProps) {
  const { about } = useShell()
  const [limiter, setLimiter] = useState(EVERY)
  const [search, setSearch] = useState(false)
  const isReset = (limits: LimitsLeft) => isByLimit(limits) && (limiter === EVERY || limiter === limits.limiter)
  return (
    <ActionDialog
      title="Reset what it has used"
      what={
        <>
          <p>
            {shownOf(identity)} has all units of {limiter === EVERY ? 'these limits' : <Text>{limiter}</Text>} again.
            Blocks, bans, rungs and deny lists stay.
          </p>
          <Stays of={known} left={{ isLeft: (limits) => !isReset(limits) || isNeverAdmitted(limits) }} />
        </>
      }
      submit="Reset"
      run={async () => {
        const body = { identity, ...(limiter !== EVERY && { limiter }), ...(search && { search }) }
        const { reset } = await ask<{ reset: readonly unknown[] }>('/api/reset', body).catch(inWords)
        return `${counted(reset.length, 'limiter')} of ${textOf(identity)}: all units are there again.`
      }}
    >
      <Choice
        label="Of"
        value={limiter}
        of={[[EVERY, 'every limiter shown'], ...limiters.map((name) => [name, name] as const)]}
        set={setLimiter}
      />
      {about.features.search && (
        <label class="check">
          <input type="checkbox" checked={search} onChange={(event) => setSearch(event.currentTarget.checked)} />
          Search all keys of Redis, also for limiters that this console was not given
        </label>
      )}
    </ActionDialog>
  )
}

/** @throws Refused */
function inWords(error: unknown): never {
  if (!(error instanceof Refused) || error.status !== 404) throw error
  const text =
    'No limiter that this console was given counts this client: search all keys for those of other processes.'
  throw new Refused(404, text)
}

const WORD = 'forget'

export function ForgetDialog({ identity }: { identity: Identity }) {
  const [typed, setTyped] = useState('')
  return (
    <ActionDialog
      title="Forget this client"
      what={
        <p>
          Everything that the store holds of {shownOf(identity)} is erased: counts, blocks, bans, strikes, list entries,
          its last refusals, and its name in the log of changes. <strong>Nothing brings it back</strong>, and it is not
          refused by any of them. Overrides, lists in files and in code, and blocks of its network stay.
        </p>
      }
      submit="Forget"
      isDangerous
      isReady={typed.trim().toLowerCase() === WORD}
      run={async () => {
        await ask('/api/forget', { identity, confirmed: true })
        return `Everything about ${textOf(identity)} is erased.`
      }}
    >
      <TextField label={`Type ${WORD} to go on`} value={typed} set={setTyped} />
    </ActionDialog>
  )
}

/** What a list does with a client that is on it. */
function effectText(effects: readonly ('allow' | 'deny')[]): string {
  if (effects.length === 2) return 'Some policies let in who is on it, others refuse it.'
  if (effects[0] === 'allow') {
    return 'Policies that use the list let it in, also where a block, a ban or a limit would refuse it.'
  }
  if (effects[0] === 'deny') return 'Policies that use the list refuse it. Resets and unblocking do not undo that.'
  return 'No limiter or policy that this console was given uses the list. Others may.'
}

interface ListProps {
  readonly identity?: Identity
  readonly list?: string
  /** What the list is to do. */
  readonly effect?: 'allow' | 'deny'
}

/** Adds to a list: a client and a list are asked for where none is given. */
export function ListDialog({ identity, list, effect }: ListProps) {
  const { lists } = useShell().about.features
  const effectsOf = useListEffects()
  const listText = useListText()
  const [given, setGiven] = useState<Identity>(identity ?? { kind: 'ip', value: '' })
  // Whoever means one that allows must not be offered one that denies.
  const fitting = effect ? lists.filter((each) => effectsOf(each).includes(effect)) : lists
  const [name, setName] = useState(list ?? (fitting.length === 1 ? (fitting[0] as string) : ''))
  const [reason, setReason] = useState('')
  const [until, setUntil] = useState('')
  return (
    <ActionDialog
      title="Add to a list"
      what={
        <p>
          {name === '' ? (
            'Choose a list: some let in who is on it, others refuse it.'
          ) : (
            <>
              {identity ? shownOf(identity) : 'A client'} will be on the list <Text>{name}</Text> in every process.{' '}
              {effectText(effectsOf(name))}
            </>
          )}
        </p>
      }
      submit="Add"
      isReady={valueText(given) !== '' && name !== ''}
      run={async (confirmed) => {
        await ask('/api/list/add', {
          list: name,
          identity: given,
          ...(reason && { reason }),
          ...(until && { expiresAt: new Date(until).getTime() }),
          ...(confirmed && { confirmed }),
        })
        return `${textOf(given)} is on ${name}.`
      }}
    >
      {!identity && <KindField identity={given} set={setGiven} />}
      <Choice
        label="List"
        value={name}
        of={[
          ...(name === '' ? [['', 'choose a list'] as const] : []),
          ...fitting.map((each) => [each, listText(each)] as const),
        ]}
        set={setName}
      />
      <TextField label="Reason" value={reason} set={setReason} />
      <TextField label="Until" type="datetime-local" value={until} set={setUntil} hint="Without a date it stays." />
    </ActionDialog>
  )
}

export function UnlistDialog({ entry, list }: { entry: Pick<ListEntry, 'kind' | 'value'>; list: string }) {
  return (
    <ActionDialog
      title="Remove from the list"
      what={
        <p>
          <WhoText {...entry} /> is removed from <Text>{list}</Text>, in every process. Entries of networks that contain
          it stay.
        </p>
      }
      submit="Remove"
      isDangerous
      run={async () => {
        await ask('/api/list/remove', { list, identity: countedOf(entry) })
        return `${entry.kind} ${entry.value} is not on ${list}.`
      }}
    />
  )
}

interface EndOverrideProps {
  readonly limiter: string
  readonly override: Pick<SavedOverride, 'policy' | 'kind' | 'value' | 'limits'> & { readonly version?: number }
  /** Whether the value is as limits count it, such as the hash of a header. */
  readonly isCounted?: boolean
}

export function EndOverrideDialog({ limiter, override, isCounted }: EndOverrideProps) {
  return (
    <ActionDialog
      title="End this override"
      what={
        <p>
          <WhoText {...override} /> has the limits of <Text>{override.policy}</Text> again that others have, in place of{' '}
          {override.limits.map(changedText).join('; ')}.
        </p>
      }
      submit="End override"
      run={async () => {
        const { kind, value, policy, version } = override
        const identity = { kind, value, ...(isCounted && { counted: true }) }
        await ask('/api/override/remove', {
          limiter,
          policy,
          identity,
          ...(version !== undefined && { expected: version }),
        })
        return `The override of ${kind} ${value} is ended.`
      }}
    />
  )
}
