import { useState } from 'preact/hooks'
import type { Identity, IdentityAnswer, LimitsLeft, WhyAnswer } from '../answers.js'
import { useShell } from '../context.js'
import { Notice, Text, Time, Who } from '../parts/basics.js'
import { TextField } from '../parts/dialog.js'
import { duration, limitText, whole } from '../parts/format.js'
import { identityFrom } from '../parts/kinds.js'
import { reasonText } from '../parts/refusals.js'

/** What is known of the request besides the client. */
export interface Request {
  readonly path?: string
  readonly method?: string
  readonly tier?: string
  readonly with?: readonly Identity[]
}

interface VerdictProps {
  readonly why: WhyAnswer
  readonly answer: IdentityAnswer
  readonly request: Request
  setRequest(request: Request): void
}

/** The answer to the question that brought the operator here. */
export function Verdict({ why, answer, request, setRequest }: VerdictProps) {
  const { now, reported, unknown } = why
  return (
    <>
      {now.length > 0 && <RefusedNow {...why} />}
      {reported.length > 0 && (
        <Notice tone="warn">
          <strong>Would be refused; not enforced.</strong> These only report, and admit it:
          <Reasons of={reported} />
        </Notice>
      )}
      {unknown.length > 0 && <NotKnown {...{ unknown, request, setRequest }} />}
      {now.length === 0 && unknown.length === 0 && <Admitted isKnown={isKnown(why, answer)} />}
    </>
  )
}

/** A misspelt client is admitted, too. */
function isKnown({ blocks, refusals, reported }: WhyAnswer, { limits, lists }: IdentityAnswer): boolean {
  const isUsed = ({ limits: all = [], override }: LimitsLeft) => override || all.some((one) => one.resetAfterMs > 0)
  return [blocks, refusals, reported, lists].some((all) => all.length > 0) || limits.some(isUsed)
}

function Admitted({ isKnown }: { isKnown: boolean }) {
  if (isKnown) return <Notice tone="good">A request would be admitted now by every limiter that is shown.</Notice>
  return (
    <Notice>
      <strong>Nothing is known of this client.</strong> No limit that is shown has counted it, and no block, list or
      refusal names it. A request would be admitted now.
    </Notice>
  )
}

/** A link to what refuses. */
const linkTo = (page: string, text: string) => (
  <a href={`#/${page}`}>
    <Text>{text}</Text>
  </a>
)

/** Where a list can be changed. */
function ListText({ name }: { name: string }) {
  const isHere = useShell().about.features.lists.includes(name)
  return isHere ? (
    linkTo('lists', name)
  ) : (
    <>
      <Text>{name}</Text>, which is in code or in a file
    </>
  )
}

function RefusedNow({ now, blocks, networks }: WhyAnswer) {
  return (
    <Notice tone="bad">
      <strong>It is refused now.</strong>
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
          </li>
        ))}
      </ul>
      <Reasons
        of={now.filter(
          ({ reason }) => blocks.length + networks.length === 0 || (reason !== 'blocked' && reason !== 'banned'),
        )}
      />
    </Notice>
  )
}

function Reasons({ of }: { of: readonly LimitsLeft[] }) {
  return (
    <ul>
      {of.map((limits) => (
        <li key={nameOf(limits)}>
          {linkTo('policies', nameOf(limits))}: {reasonText(limits.reason ?? 'limited')}
          {limits.list && (
            <>
              {' '}
              <ListText name={limits.list.list} />
            </>
          )}
          {fullOf(limits)}
          {limits.retryAfterMs === undefined ? '' : `, for ${duration(limits.retryAfterMs)}`}
          {limits.unless && `, unless ${wordsOf(limits.unless, ' or ')} admits it`}
        </li>
      ))}
    </ul>
  )
}

interface NotKnownProps {
  readonly unknown: readonly LimitsLeft[]
  readonly request: Request
  setRequest(request: Request): void
}

/** Nothing is green while a limit needs more of the request. */
function NotKnown({ unknown, request, setRequest }: NotKnownProps) {
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const kinds = [...new Set([...unknown.flatMap(({ needs = [] }) => needs), ...Object.keys(values)])]
  return (
    <Notice tone="warn">
      <strong>Whether it is admitted is not known.</strong>
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
    </Notice>
  )
}

/** Needs that are no kinds of identities. */
const WORDS: Readonly<Record<string, string>> = {
  request: 'a function of the request',
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
export function stillRefusing({ now, blocks, networks }: WhyAnswer): string {
  const isOfLists = ({ reason }: LimitsLeft) => reason !== 'blocked' && reason !== 'banned'
  const reasons = [
    ...[...blocks, ...networks].map(
      ({ kind, value, policy = 'every policy' }) => `a block of ${kind} ${value} by ${policy}`,
    ),
    ...now
      .filter((limits) => blocks.length + networks.length === 0 || isOfLists(limits))
      .map(
        (limits) =>
          `${nameOf(limits)} (${reasonText(limits.reason ?? 'limited')}${limits.list ? ` ${limits.list.list}` : ''})`,
      ),
  ]
  return now.length === 0 ? '' : reasons.join(', ')
}
