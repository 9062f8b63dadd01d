import { useState } from 'preact/hooks'
import type { Identity, IdentityAnswer, LimitsLeft, WhyAnswer } from '../answers.js'
import { useListEffects, useShell } from '../context.js'
import { identityOf, Notice, Text, Time, valueText, Who, WhoText } from '../parts/basics.js'
import { TextField } from '../parts/dialog.js'
import { counted, limitText, whole } from '../parts/format.js'
import { identityFrom } from '../parts/kinds.js'
import { reasonText, spanText } from '../parts/refusals.js'
import { addressOf } from '../router.js'

/** What is known of the request besides the client. */
export interface Request {
  readonly path?: string
  readonly method?: string
  readonly tier?: string
  readonly with?: readonly Identity[]
}

interface VerdictProps {
  readonly why: WhyAnswer
  /** When `why` came, in ms since 1970. */
  readonly at: number
  /** Whether it could not be asked again. */
  readonly isOld: boolean
  readonly answer: IdentityAnswer
  readonly request: Request
  setRequest(request: Request): void
}

/** The answer to the question that brought the operator here. */
export function Verdict({ why, at, isOld, answer, request, setRequest }: VerdictProps) {
  const { now, reported, unknown } = why
  const isNetwork = isOfNetwork(why)
  const isOpen = unknown.length > 0 && !isNetwork
  return (
    <div class={isOld ? 'verdict old' : 'verdict'}>
      {isOld && (
        <p>
          As of <Time at={at} />:
        </p>
      )}
      {request.with && request.with.length > 0 && (
        <p>
          With{' '}
          {request.with.map(({ kind, value }, i) => (
            <span key={kind}>
              {i > 0 && ', '}
              <Who kind={kind} value={valueText({ kind, value })} />
            </span>
          ))}
          .{' '}
          <button type="button" class="quiet" onClick={() => setRequest({ ...request, with: [] })}>
            Ask without
          </button>
        </p>
      )}
      {now.length > 0 && (
        <Notice tone="bad">
          <strong>It is refused now.</strong>
          <Refusing {...{ why, at }} />
        </Notice>
      )}
      {reported.length > 0 && (
        <Notice tone="warn">
          <strong>Would be refused; not enforced.</strong> These only report, and admit it:
          <ul>
            {reported.map((limits) => (
              <Reason key={nameOf(limits)} {...{ limits, at }} />
            ))}
          </ul>
        </Notice>
      )}
      {isNetwork && <OfNetwork {...{ why, at }} lists={answer.lists} />}
      {isOpen && now.length === 0 && <AdmittedSoFar why={why} answer={answer} />}
      {isOpen && (
        <NotKnown {...{ why, request, setRequest }} isOfOthers={now.length > 0 || admitting(answer).length > 0} />
      )}
      {now.length === 0 && unknown.length === 0 && (
        <Admitted isKnown={isKnown(why, answer)} maxBody={why.maxBody} answer={answer} />
      )}
      {now.length === 0 && why.refusals[0] && (
        <p class="below">
          It was refused {counted(why.refusals.length, 'time')} in {spanText({ since: why.knownSince, now: at })}, the
          last time at <Time at={why.refusals[0].at} />.
        </p>
      )}
    </div>
  )
}

/** Limits count its addresses, each by itself. */
export const isOfNetwork = ({ identity, unknown }: WhyAnswer): boolean =>
  identity.kind === 'ip' && unknown.some(({ needs }) => needs?.includes('ip'))

/** A misspelt client is admitted, too. */
function isKnown({ blocks, refusals, reported }: WhyAnswer, { limits, lists }: IdentityAnswer): boolean {
  const isUsed = ({ limits: all = [], override }: LimitsLeft) => override || all.some((one) => one.resetAfterMs > 0)
  return [blocks, refusals, reported, lists].some((all) => all.length > 0) || limits.some(isUsed)
}

interface AdmittedProps {
  readonly isKnown: boolean
  readonly maxBody: number | undefined
  readonly answer: IdentityAnswer
}

function Admitted({ isKnown, maxBody, answer }: AdmittedProps) {
  const body = maxBody === undefined ? '' : `, with a body of up to ${whole(maxBody)} bytes`
  if (isKnown)
    return (
      <Notice tone="good">
        A request would be admitted now by every limiter that is shown{body}. <Next of={answer} />
      </Notice>
    )
  return (
    <Notice>
      <strong>Nothing is known of this client.</strong> No limit that is shown has counted it, and no block, list or
      refusal names it. A request would be admitted now{body}.
    </Notice>
  )
}

/** Those that admit it, whatever others that need more of the request say. */
function admitting({ limits }: IdentityAnswer): readonly LimitsLeft[] {
  return limits.filter(({ allowed, needs, error }) => allowed === true && !needs && error === undefined)
}

/** Before those of which it is not known: none of it is green. */
function AdmittedSoFar({ why, answer }: { why: WhyAnswer; answer: IdentityAnswer }) {
  const all = admitting(answer)
  if (all.length === 0) return null
  return (
    <Notice>
      {!isKnown(why, answer) && (
        <>
          <strong>Nothing is known of this client.</strong>{' '}
        </>
      )}
      <strong>Admitted by what counts its {why.identity.kind}</strong>:{' '}
      {all.map((limits, i) => (
        <span key={nameOf(limits)}>
          {i > 0 && ', '}
          <PolicyLink of={limits} />
        </span>
      ))}
      . <Next of={answer} />
    </Notice>
  )
}

/** How long it stays admitted: the limit with the smallest share left, if it has used any. */
function Next({ of }: { of: IdentityAnswer }) {
  const all = admitting(of).flatMap(({ limits = [], ...rest }) => limits.map((one) => ({ one, of: rest })))
  if (all.length === 0) return null
  const shareOf = ({ one }: (typeof all)[number]) => one.remaining / Math.max(one.capacity, 1)
  const [least] = all.filter((each) => shareOf(each) < 1).sort((a, b) => shareOf(a) - shareOf(b))
  if (!least) return <>It stays admitted until a limit is used up. It has used nothing yet.</>
  const { one } = least
  return (
    <>
      It stays admitted until a limit is used up. The smallest share is left of <Text>{nameOf(least.of)}</Text>:{' '}
      {whole(one.remaining)} of {whole(one.capacity)}, {limitText(one)}.
    </>
  )
}

/** A network has no limit of its own: blocks and lists say what becomes of its addresses. */
function OfNetwork({ why, at, lists }: { why: WhyAnswer; at: number; lists: readonly string[] }) {
  const effectsOf = useListEffects()
  const denying = lists.filter((list) => effectsOf(list).includes('deny'))
  const allowing = lists.filter((list) => effectsOf(list).includes('allow'))
  const isBlocked = why.blocks.length + why.networks.length > 0
  const links = (all: readonly string[]) => all.map((list) => <ListLink key={list} list={list} />)
  return (
    <Notice tone={isBlocked || denying.length > 0 ? 'bad' : 'plain'}>
      {isBlocked && (
        <>
          <strong>The addresses of this network are refused.</strong>
          <Refusing {...{ why, at }} />
        </>
      )}
      {denying.length > 0 && <p>Policies that use these lists refuse it: {links(denying)}</p>}
      {allowing.length > 0 && (
        <p>Policies that use these lists let it in, also while it is blocked: {links(allowing)}</p>
      )}
      {!isBlocked && lists.length === 0 && <strong>No block and no list names this network. </strong>}
      {!isBlocked && 'Limits count each address by itself: find an address to see whether it is admitted.'}
    </Notice>
  )
}

function ListLink({ list }: { list: string }) {
  return (
    <a href={addressOf('lists', { list })}>
      <Text>{list}</Text>{' '}
    </a>
  )
}

/** What refuses a client, as far as an action would leave it. */
export interface Left {
  readonly blocks?: boolean
  isLeft?(limits: LimitsLeft): boolean
}

const isByBlock = ({ reason }: LimitsLeft): boolean => reason === 'blocked' || reason === 'banned'

/** Whether a limit refuses, and not what stands before the limits. */
export const isByLimit = (limits: LimitsLeft): boolean => !isByBlock(limits) && limits.list === undefined

/** What would refuse a client after an action: blocks of its own unless they are ended, those of networks, and other reasons. */
export function leftOf({ now, blocks, networks, ...why }: WhyAnswer, { blocks: stay = true, isLeft }: Left): WhyAnswer {
  const isNamed = ({ limiter, policy }: LimitsLeft) =>
    [...blocks, ...networks].some((block) => [undefined, limiter, policy].includes(block.policy))
  const left = now.filter((limits) => (isByBlock(limits) ? !isNamed(limits) : (isLeft?.(limits) ?? true)))
  return { ...why, now: left, blocks: stay ? blocks : [], networks }
}

/** Everything that refuses a client, each with a link to where it can be changed. */
export function Refusing({ why, at }: { why: WhyAnswer; at: number }) {
  const { now, blocks, networks } = leftOf(why, {})
  return (
    <ul>
      {blocks.map(({ policy, reason, until, ban }) => (
        <li key={`block ${policy}`}>
          {ban ? `Banned after ${whole(ban.strikes)} strikes` : 'Blocked'} by{' '}
          {policy ? <Text>{policy}</Text> : 'every policy'} until <Time at={until} />
          {reason && (
            <>
              : <Text>{reason}</Text>
            </>
          )}
        </li>
      ))}
      {networks.map((block) => (
        <li key={`network ${block.policy} ${block.value}`}>
          Its network <Who {...block} /> is {block.ban ? 'banned' : 'blocked'} by{' '}
          {block.policy ? <Text>{block.policy}</Text> : 'every policy'} until <Time at={block.until} />
          {block.reason && (
            <>
              : <Text>{block.reason}</Text>
            </>
          )}
        </li>
      ))}
      {now.map((limits) => (
        <Reason key={nameOf(limits)} {...{ limits, at }} />
      ))}
    </ul>
  )
}

/** Why a limiter or a policy refuses, and until when. */
function Reason({ limits, at }: { limits: LimitsLeft; at: number }) {
  const { reason = 'limited', list, retryAfterMs, unless } = limits
  return (
    <li>
      <PolicyLink of={limits} />: {reasonText(reason)}
      {list && <ListText name={list.list} of={limits} />}
      {fullOf(limits)}
      {retryAfterMs !== undefined && (
        <>
          , until <Time at={at + retryAfterMs} />
        </>
      )}
      {unless && `, unless ${wordsOf(unless, ' or ')} admits it`}
    </li>
  )
}

/** A limiter or a policy, as a link to its limits. */
function PolicyLink({ of }: { of: LimitsLeft }) {
  const { limiter, policy, tier } = of
  const query = { limiter, ...(policy !== undefined && { policy }), ...(tier !== undefined && { tier }) }
  return (
    <a href={addressOf('policies', query)}>
      <Text>{nameOf(of)}</Text>
    </a>
  )
}

/** The name that entries in a document or in code have for a list. */
const WITHOUT_NAME = ['list', 'ipRanges', 'predicate', '']

/** Where a list can be changed. */
function ListText({ name, of }: { name: string; of: LimitsLeft }) {
  const isHere = useShell().about.features.lists.includes(name)
  if (isHere)
    return (
      <>
        {': '}
        <a href={addressOf('lists', { list: name })}>
          <Text>{name}</Text>
        </a>
      </>
    )
  if (WITHOUT_NAME.includes(name)) return <>{of.policy === undefined ? ' in code' : ' in its document, or in code'}</>
  return (
    <>
      : <Text>{name}</Text>, in a file or in code
    </>
  )
}

interface NotKnownProps {
  /** Whether it is known what others do. */
  readonly isOfOthers: boolean
  readonly why: WhyAnswer
  readonly request: Request
  setRequest(request: Request): void
}

/** Nothing is green while a limit needs more of the request. */
function NotKnown({ why, isOfOthers, request, setRequest }: NotKnownProps) {
  const { unknown } = why
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const kinds = [...new Set([...unknown.flatMap(({ needs = [] }) => needs), ...Object.keys(values)])]
  return (
    <Notice tone="warn">
      <strong>
        {isOfOthers ? 'Whether these would admit it is not known.' : 'Whether it is admitted is not known.'}
      </strong>
      <ul>
        {unknown.map((limits) => (
          <li key={nameOf(limits)}>
            <Text>{nameOf(limits)}</Text>: {limits.error ?? `not known: needs ${wordsOf(limits.needs ?? [], ' and ')}`}
          </li>
        ))}
      </ul>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          const given = Object.entries(values).filter(([, value]) => value.trim() !== '')
          setRequest({ ...request, with: given.map(([kind, value]) => identityFrom(kind, value)) })
        }}
      >
        {kinds.filter(isKind).map((kind) => (
          <TextField
            key={kind}
            label={`Its ${kind}`}
            value={values[kind] ?? ''}
            set={(value) => setValues({ ...values, [kind]: value })}
          />
        ))}
        {kinds.some(isKind) && <button type="submit">Ask again</button>}
      </form>
      <SeenWith {...{ why, kinds }} ask={(seen) => setRequest({ ...request, with: seen })} />
    </Notice>
  )
}

/** Requests that are proposed. */
const MAX_SEEN = 3

interface SeenWithProps {
  readonly why: WhyAnswer
  readonly kinds: readonly string[]
  ask(seen: readonly Identity[]): void
}

/** The identities of needed kinds that its refused requests had, the most frequent first: an operator rarely knows them. */
function SeenWith({ why: { identity, refusals }, kinds, ask }: SeenWithProps) {
  const own = `${identity.kind}=${identity.value}`
  const seen = new Map<string, { identities: ReturnType<typeof identityOf>[]; count: number }>()
  for (const refusal of refusals) {
    const others = refusal.identities
      .filter((text) => text !== own)
      .map(identityOf)
      .filter(({ kind }) => kinds.includes(kind))
    if (others.length === 0) continue
    const key = JSON.stringify(others)
    seen.set(key, { identities: others, count: (seen.get(key)?.count ?? 0) + 1 })
  }
  const most = [...seen].sort(([, a], [, b]) => b.count - a.count).slice(0, MAX_SEEN)
  if (most.length === 0) return null
  return (
    <p class="below">
      In its last refusals:{' '}
      {most.map(([key, { identities, count }]) => (
        <button key={key} type="button" class="quiet" onClick={() => ask(identities)}>
          {identities.map(({ kind, value }, i) => (
            <span key={kind}>
              {i > 0 && ', '}
              <WhoText kind={kind} value={value} />
            </span>
          ))}{' '}
          ({whole(count)} ×)
        </button>
      ))}
    </p>
  )
}

/** Needs that are no kinds of identities. */
const WORDS: Readonly<Record<string, string>> = {
  request: 'a function of the request',
  trap: 'the headers, as a trap has this path',
  responder: 'a responder that does more than refuse',
  queue: 'the queue of requests that wait',
  host: 'the host',
  ip: 'one address',
}

const isKind = (need: string): boolean => !Object.hasOwn(WORDS, need) || need === 'ip'

const wordsOf = (needs: readonly string[], and: string): string =>
  needs.map((need) => WORDS[need] ?? `the ${need}`).join(and)

export const nameOf = ({ limiter, policy, tier }: LimitsLeft): string =>
  [limiter, policy, tier].filter((each) => each !== undefined).join(' › ')

function fullOf({ limits = [] }: LimitsLeft): string {
  const full = limits.find(({ allowed }) => !allowed)
  return full ? ` (${limitText(full)})` : ''
}

/** What still refuses a client, in words; empty if nothing does. */
export function stillRefusing(why: WhyAnswer): string {
  if (why.now.length === 0) return ''
  const { now, blocks, networks } = leftOf(why, {})
  const ofBlocks = [...blocks, ...networks].map(
    ({ kind, value, policy = 'every policy' }) => `a block of ${kind} ${value} by ${policy}`,
  )
  const others = now.map(
    (limits) =>
      `${nameOf(limits)} (${reasonText(limits.reason ?? 'limited')}${limits.list ? `: ${limits.list.list}` : ''})`,
  )
  return [...ofBlocks, ...others].join(', ')
}
