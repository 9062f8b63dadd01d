import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { Identity } from '../answers.js'
import { useShell } from '../context.js'
import { useName } from '../live/names.js'
import type { Asked } from '../live/use-ask.js'
import { addressOf, go } from '../router.js'
import { isForever, preciseTime, shortTime } from './format.js'

export function Time({ at }: { at: number }) {
  if (isForever(at)) return <>never</>
  return (
    <time dateTime={new Date(at).toISOString()} title={preciseTime(at)}>
      {/* In a narrow column, the day is a line of its own. */}
      {shortTime(at)
        .split(/(?<=,) /)
        .flatMap((part, i) => [
          i > 0 && ' ',
          <span key={part} class="short">
            {part}
          </span>,
        ])}
    </time>
  )
}

/** Characters that stay in one line of a table. */
const SHORT = 30
/** Characters of an identity in a table; the page of the client shows all of them. */
const SHOWN = 64

/** Text of a stranger: its direction stays within it. */
export function Text({ children }: { children: ComponentChildren }) {
  if (children === '' || children === undefined) return null
  const isShort = typeof children === 'string' && children.length <= SHORT
  return <bdi class={isShort ? 'short' : undefined}>{children}</bdi>
}

/** An identity of an answer, as a link to its page. */
export function Who({ kind, value, text }: { kind: string; value: string; text?: string }) {
  // Overrides have hashes as documents do.
  if (value.startsWith('sha256:')) return <WhoText kind={kind} value={value} />
  return (
    // biome-ignore lint/a11y/useValidAnchor: it is a place, whose client is no part of the address
    <a
      href="#/client"
      class="who"
      onClick={(event) => {
        event.preventDefault()
        go('client', { kind, value, counted: true })
      }}
    >
      {text === undefined ? (
        <WhoText kind={kind} value={value} />
      ) : (
        <>
          {text}
          <span class="hidden">
            {' '}
            <WhoText kind={kind} value={value} />
          </span>
        </>
      )}
    </a>
  )
}

export function WhoText({ kind, value, isWhole }: { kind: string; value: string; isWhole?: boolean }) {
  const name = useName(kind, value)
  const most = value.startsWith('sha256:') ? SHORT : SHOWN
  const shown = isWhole || value.length <= most ? value : `${[...value].slice(0, most - 10).join('')}…`
  return (
    <span
      class={`identity ${kind.length + shown.length <= SHOWN / 2 ? 'short' : ''}`}
      title={shown === value ? undefined : value}
    >
      <span class="kind">{kind}</span> <bdi>{shown}</bdi>
      {name !== undefined && (
        <>
          {' '}
          <bdi class="name">{name}</bdi>
        </>
      )}
    </span>
  )
}

/** An identity of an answer as text, `kind=value`. */
export function identityOf(text: string) {
  const at = text.indexOf('=')
  return { kind: text.slice(0, Math.max(at, 0)), value: text.slice(at + 1), counted: true }
}

export function WhoOf({ text }: { text: string }) {
  const { kind, value } = identityOf(text)
  return kind === '' ? <Text>{text}</Text> : <Who {...{ kind, value }} />
}

/** Who made a change, as a link to their changes. */
export function Operator({ name }: { name: string }) {
  return (
    <a href={addressOf('changes', { by: name })}>
      <Text>{name}</Text>
    </a>
  )
}

export const valueText = ({ value }: Identity): string => (typeof value === 'string' ? value : value.join(' '))

export type Tone = 'good' | 'bad' | 'warn' | 'plain'

export function Chip({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`chip ${tone}`}>{children}</span>
}

interface NoticeProps {
  readonly tone?: Tone
  /** Whether what follows is of before: it is grey. */
  readonly isAboveOld?: boolean
  readonly children: ComponentChildren
}

/** A sentence in place of something, or above it. */
export function Notice({ tone = 'plain', isAboveOld, children }: NoticeProps) {
  return (
    <div class={isAboveOld ? `notice ${tone} above-old` : `notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      {children}
    </div>
  )
}

/** The failure of a request: above the answer before it, or in its place. */
export function Failure({ of }: { of: Pick<Asked<unknown>, 'error' | 'failedAt' | 'answer'> }) {
  const { error, failedAt, answer } = of
  const isOutage = useShell().about.store.state === 'unavailable'
  // An outage is told once, above the page.
  if (!error || (isOutage && error.message.startsWith('The store is away'))) return null
  return (
    <Notice tone="bad" isAboveOld={answer !== undefined}>
      {error.message}{' '}
      {failedAt !== undefined && (
        <span class="muted">
          Since <Time at={failedAt} />
          {answer !== undefined && '; this page shows the state before'}.
        </span>
      )}
    </Notice>
  )
}

interface SectionProps {
  readonly title: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}

export function Section({ title, aside, children }: SectionProps) {
  const id = useId()
  return (
    <section aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  )
}

interface PageHeadProps {
  readonly title: ComponentChildren
  readonly about?: ComponentChildren
  readonly children?: ComponentChildren
}

export function PageHead({ title, about, children }: PageHeadProps) {
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {about && <p class="muted">{about}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  )
}
