import { useState } from 'preact/hooks'
import type { TrafficAnswer } from '../../src/traffic/answers.js'
import { ForgetDialog, LetInDialog, ListDialog, ResetDialog, UnlistDialog } from '../actions/actions.js'
import { BlockDialog } from '../actions/block.js'
import { OverrideDialog } from '../actions/override.js'
import type { KnownWhy } from '../actions/stays.js'
import type { Identity, IdentityAnswer, LimitLeft, LimitsLeft, WhyAnswer } from '../answers.js'
import { ask, Refused } from '../api.js'
import { useListEffects, useListText, useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Chip, Failure, Notice, PageHead, Section, Text, Time, valueText, WhoText } from '../parts/basics.js'
import { BlockTable } from '../parts/blocks.js'
import { ClientSearch } from '../parts/client-search.js'
import { TextField } from '../parts/dialog.js'
import { counted, duration, limitText, whole } from '../parts/format.js'
import { OverrideTable } from '../parts/overrides.js'
import { RefusalLine } from '../parts/refusal-line.js'
import { KnownSpan, NotRecorded, RefusalTable } from '../parts/refusals.js'
import { Table } from '../parts/table.js'
import { addressOf } from '../router.js'
import { isOfNetwork, nameOf, type Request, Verdict } from './verdict.js'

const EVERY_MS = 5000
const OF_ADDRESSES = 'Refusals name addresses: find one of this network.'

interface ClientProps {
  readonly identity: Identity | undefined
  /** Of a client whose page somebody has linked. */
  readonly id: string | undefined
}

export function Client({ identity, id }: ClientProps) {
  if (identity) return <Found key={`${identity.kind}=${valueText(identity)}`} identity={identity} />
  if (id !== undefined) return <Linked key={id} id={id} />
  return (
    <>
      <PageHead
        title="Client"
        about="A client is found by an address, a network, an API key, an account or whatever limits count. The value stands in no address and no log."
      />
      <ClientSearch isLarge />
    </>
  )
}

function Linked({ id }: { id: string }) {
  const found = useAsk<{ client: { kind: string; value: string } | null }>('/api/client', { id })
  const client = found.answer?.client
  if (client) return <Found identity={{ ...client, counted: true }} />
  return (
    <>
      <PageHead title="Client" />
      <Failure of={found} />
      {client === null && (
        <Notice>This link to a client has ended: it works for a week, and not once the client is erased.</Notice>
      )}
      <ClientSearch isLarge />
    </>
  )
}

/** Puts a random id of the client into the address, which can be sent then: nothing else in it names the client. */
function LinkButton({ identity }: { identity: Identity }) {
  const { say } = useShell()
  async function link() {
    try {
      const { id } = await ask<{ id: string }>('/api/id', { identity })
      history.replaceState(history.state, '', addressOf('client', { id }))
      const copied = await navigator.clipboard?.writeText(location.href).then(
        () => true,
        () => false,
      )
      say(
        `${copied ? 'Copied: a' : 'The address is now a'} link to this client, for operators of this console, for a week.`,
      )
    } catch (error) {
      say(error instanceof Refused ? error.message : 'This page failed; reload it.')
    }
  }
  return (
    <button type="button" class="quiet" onClick={() => void link()}>
      Link
    </button>
  )
}

function Found({ identity }: { identity: Identity }) {
  const [request, setRequest] = useState<Request>({})
  const why = useAsk<WhyAnswer>('/api/why', { identity, ...request }, EVERY_MS)
  const state = useAsk<IdentityAnswer>('/api/identity', { identity, ...request }, EVERY_MS)
  const { answer } = state
  const { about, has } = useShell()
  const known = why.answer && { why: why.answer, at: why.answeredAt ?? Date.now() }
  const shown = answer?.identity ?? { kind: identity.kind, value: valueText(identity) }
  return (
    <>
      <PageHead title={<WhoText {...shown} isWhole />}>
        {answer && known && <Actions {...{ identity, answer, known, request }} />}
        {answer && has('/api/id') && <LinkButton identity={identity} />}
      </PageHead>
      <Failure of={why.error ? why : state} />
      {known && answer && <Verdict {...{ ...known, answer, request, setRequest }} isOld={why.error !== undefined} />}
      <LimitSection {...{ answer, request, setRequest }} hasFailed={state.error !== undefined} />
      {answer?.overrides && answer.overrides.length > 0 && (
        <Section title="Limits of its own">
          <OverrideTable name="Limits of its own" overrides={answer.overrides} isOfOne />
        </Section>
      )}
      {answer && answer.blocks.length > 0 && (
        <Section title="Blocks and bans">
          <BlockTable name="Blocks and bans" blocks={answer.blocks} isOfOne />
        </Section>
      )}
      {answer && answer.lists.length > 0 && <Lists identity={shown} lists={answer.lists} />}
      <Section title="Last refusals" aside={<KnownSpan since={known?.why.knownSince} now={known?.at} />}>
        {known && <RefusalLine of={known.why} now={known.at} />}
        {known?.why.knownSince !== undefined && about.features.traffic && <RefusedInTraffic {...shown} />}
        <RefusalTable
          name="Last refusals"
          refusals={why.answer?.refusals ?? (why.error ? [] : undefined)}
          empty={
            why.error ? (
              'They are not known.'
            ) : known && isOfNetwork(known.why) ? (
              OF_ADDRESSES
            ) : (
              <NotRecorded since={known?.why.knownSince} now={known?.at} isOfOne />
            )
          }
          of={`${shown.kind}=${shown.value}`}
        />
      </Section>
      <Stored identity={identity} />
    </>
  )
}

const MINUTE_MS = 60_000
/** Clients of traffic that are looked at. */
const MAX_CLIENTS = 50

/** The refusals of a client that traffic has counted: it has a count, where refusals have been replaced. */
function RefusedInTraffic({ kind, value }: { kind: string; value: string }) {
  // Rounded, so that a minute has one question.
  const to = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS
  const body = { from: to - 15 * MINUTE_MS, to, by: 'refused', top: MAX_CLIENTS }
  const { answer } = useAsk<TrafficAnswer>('/api/traffic', body, EVERY_MS * 2)
  const isNetwork = kind === 'ip' && value.includes('/')
  const own = isNetwork
    ? answer?.networks.entries.find((network) => network.value === value)
    : answer?.clients.entries.find(({ client }) => client?.kind === kind && client.value === value)
  // Networks of traffic are those of /24 and /48.
  if (!answer || answer.processes === 0 || (isNetwork && !own)) return null
  return (
    <p class="below">
      {own ? (
        <>
          Traffic of the last 15 minutes has at least {counted(own.refused, 'refusal')} of it, among{' '}
          {counted(own.decisions, 'decision')}:{' '}
          <a href={addressOf('traffic', { [isNetwork ? 'network' : 'client']: own.value, by: 'refused' })}>
            its traffic
          </a>
          .
        </>
      ) : (
        <>
          It is not among the {MAX_CLIENTS} clients with the most refusals of the last 15 minutes in{' '}
          <a href={addressOf('traffic', { by: 'refused' })}>Traffic</a>.
        </>
      )}
    </p>
  )
}

interface ActionsProps {
  readonly identity: Identity
  readonly answer: IdentityAnswer
  readonly known: KnownWhy
  readonly request: Request
}

function Actions({ identity, answer, known, request }: ActionsProps) {
  const { mayAct, open, about, has } = useShell()
  const effectsOf = useListEffects()
  if (!mayAct) return null
  const { blocks, limits } = answer
  const limiters = [...new Set(limits.map(({ limiter }) => limiter))]
  const full = known.why.now
  const isRefused = blocks.length > 0 || known.why.now.length > 0
  const isCounted = limits.some(({ limits: all = [], allowed }) => all.length > 0 || allowed === false)
  const raise = has('/api/override') && (
    <button
      type="button"
      onClick={() => open(<OverrideDialog {...{ identity, full, known }} overrides={answer.overrides} />)}
    >
      Raise a limit
    </button>
  )
  const listed = (effect?: 'allow') => (
    <button type="button" onClick={() => open(<ListDialog {...{ identity, ...(effect && { effect }) }} />)}>
      Add to a list
    </button>
  )
  const { lists } = about.features
  const canAllow = lists.some((name) => effectsOf(name).includes('allow'))
  return (
    <>
      {isRefused && (
        <button
          type="button"
          class="primary"
          onClick={() =>
            open(
              <LetInDialog
                {...{ identity, known, isCounted, request, forLonger: [raise, canAllow && listed('allow')] }}
              />,
            )
          }
        >
          Let in now
        </button>
      )}
      {raise}
      <button type="button" onClick={() => open(<ResetDialog {...{ identity, known, limiters }} />)}>
        Reset
      </button>
      {lists.length > 0 && listed()}
      {about.features.blocks && (
        <button type="button" onClick={() => open(<BlockDialog identity={identity} />)}>
          Block
        </button>
      )}
      {about.features.forget && (
        <button type="button" onClick={() => open(<ForgetDialog identity={identity} />)}>
          Forget
        </button>
      )}
    </>
  )
}

interface LimitRow extends LimitsLeft {
  readonly one?: LimitLeft
}

interface LimitSectionProps {
  readonly answer: IdentityAnswer | undefined
  readonly hasFailed: boolean
  readonly request: Request
  setRequest(request: Request): void
}

function LimitSection({ answer, hasFailed, request, setRequest }: LimitSectionProps) {
  const rows = answer?.limits.flatMap((each): LimitRow[] =>
    each.limits?.length ? each.limits.map((one) => ({ ...each, one })) : [{ ...each }],
  )
  const isWhole = ({ one, override }: LimitRow) =>
    one !== undefined && one.resetAfterMs === 0 && one.allowed && !override
  const used = rows?.filter((row) => !isWhole(row))
  const untouched = rows?.filter(isWhole) ?? []
  const none =
    untouched.length > 0
      ? 'It has used nothing.'
      : 'No limiter or policy that this console was given counts this kind of client.'
  return (
    <Section title="What is left">
      <LimitTable
        name="What is left"
        rows={used ?? (hasFailed ? [] : undefined)}
        empty={hasFailed && !answer ? 'It is not known.' : none}
      />
      {untouched.length > 0 && (
        <details>
          <summary>{counted(untouched.length, 'limit')} of which it has used nothing</summary>
          <LimitTable name="Limits of which it has used nothing" rows={untouched} empty="" />
        </details>
      )}
      <details>
        <summary>As a request to a path, by a method or of a tier</summary>
        <div class="filters">
          <TextField
            label="Path"
            value={request.path ?? ''}
            set={(path) => setRequest(without({ ...request, path }))}
          />
          <TextField
            label="Method"
            value={request.method ?? ''}
            set={(method) => setRequest(without({ ...request, method }))}
          />
          <TextField
            label="Tier"
            value={request.tier ?? ''}
            set={(tier) => setRequest(without({ ...request, tier }))}
          />
        </div>
      </details>
    </Section>
  )
}

function LimitTable({ name, rows, empty }: { name: string; rows: readonly LimitRow[] | undefined; empty: string }) {
  return (
    <Table
      name={name}
      rows={rows}
      empty={empty}
      keyOf={(row) => `${nameOf(row)} ${row.one?.name}`}
      columns={[
        { title: 'Limiter', show: (row) => <Text>{nameOf(row)}</Text> },
        {
          title: 'Limit',
          show: ({ one, error }) => (one ? <LimitOf one={one} /> : <Text>{error ?? 'decided before its limits'}</Text>),
        },
        { title: 'Left', isNumber: true, show: ({ one }) => one && whole(one.remaining) },
        { title: 'Use', show: ({ one }) => one && <Bar share={1 - one.remaining / Math.max(one.capacity, 1)} /> },
        {
          title: 'Restored in',
          isNumber: true,
          show: ({ one }) => one && (one.resetAfterMs > 0 ? duration(one.resetAfterMs) : '–'),
        },
        rows?.some(({ override }) => override) && {
          title: 'Override',
          show: ({ override }) =>
            override && (
              <Chip>
                {override.until === undefined ? (
                  'in the document'
                ) : (
                  <>
                    until <Time at={override.until} />
                  </>
                )}
              </Chip>
            ),
        },
      ]}
    />
  )
}

const without = (request: Request): Request =>
  Object.fromEntries(Object.entries(request).filter(([, value]) => value !== ''))

function LimitOf({ one }: { one: LimitLeft }) {
  return <span title={one.name}>{limitText(one)}</span>
}

/** A share of a limit. The number beside it says the same. */
export function Bar({ share }: { share: number }) {
  const part = Math.min(Math.max(share, 0), 1)
  return (
    <svg class={`bar ${part >= 1 ? 'full' : ''}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="6" rx="3" />
      <rect width={part * 100} height="6" rx="3" class="used" />
    </svg>
  )
}

function Lists({
  identity,
  lists,
}: {
  identity: { readonly kind: string; readonly value: string }
  lists: readonly string[]
}) {
  const { mayAct, open } = useShell()
  const listText = useListText()
  return (
    <Section title="Lists">
      <ul class="plain">
        {lists.map((list) => (
          <li key={list}>
            <Chip>
              <Text>{listText(list)}</Text>
            </Chip>{' '}
            {mayAct && (
              <button type="button" class="quiet" onClick={() => open(<UnlistDialog list={list} entry={identity} />)}>
                Remove
              </button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** All keys of Redis are searched only where the operator asks for it. */
function Stored({ identity }: { identity: Identity }) {
  const { about } = useShell()
  const [isWanted, setWanted] = useState(false)
  const { answer, ...asked } = useAsk<IdentityAnswer>(isWanted ? '/api/identity' : undefined, {
    identity,
    search: true,
  })
  if (!about.features.search) return null
  return (
    <Section title="Everything in Redis">
      {isWanted ? (
        <>
          <Failure of={{ answer, ...asked }} />
          {answer ? (
            <pre>{JSON.stringify(answer.stored, null, 2)}</pre>
          ) : (
            !asked.error && <p class="empty">Searching.</p>
          )}
        </>
      ) : (
        <p class="muted">
          Also finds limiters that this console was not given. With millions of keys, a search takes seconds and load.{' '}
          <button type="button" class="quiet" onClick={() => setWanted(true)}>
            Search all keys
          </button>
        </p>
      )}
    </Section>
  )
}
