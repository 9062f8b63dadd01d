import type { HistoryAnswer } from '../../src/figures/answers.js'
import type { TrafficAnswer } from '../../src/traffic/answers.js'
import type { Version } from '../answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Text } from '../parts/basics.js'
import { counted, policyIn, rate, share, whole } from '../parts/format.js'

const MINUTE_MS = 60_000
/** Minutes before and after a change that are compared. */
const BESIDE = 10
/** Minutes are kept for a day. */
const KEPT_MS = 1440 * MINUTE_MS
const EVERY_MS = 20_000
/** Policies of one change that are compared. */
const MAX_POLICIES = 4
/** The share of decisions by which refusals have to rise to be told. */
const WORSE = 0.05

/** Outcomes that no limit causes. Their requests are left out on both sides of a change. */
const NOT_BY_LIMITS = ['blocked', 'banned', 'denied', 'unavailable']

/** A change of a document, between the one before and the one after it. */
export interface DocumentChange extends Pick<Version, 'at' | 'differences'> {
  readonly limiter: string
  readonly since: number
  readonly until: number
}

/** The policies that differ, by the lines of their differences. */
function policiesIn(lines: readonly string[] = []): string[] {
  const names = lines.flatMap((line) => /^[~+-] (?:policy|overrides of) ([\w.-]+)/.exec(line)?.[1] ?? [])
  return [...new Set(names)]
}

/** Refusals of each policy that was changed, before and after it. */
export function Effects({ of }: { of: DocumentChange }) {
  const policies = policiesIn(of.differences)
  if (of.at < Date.now() - KEPT_MS) return <span class="muted">kept for a day</span>
  return (
    <>
      {policies.slice(0, MAX_POLICIES).map((policy) => (
        <Effect key={policy} {...{ of, policy }} />
      ))}
      {policies.length > MAX_POLICIES && <span class="muted">and {whole(policies.length - MAX_POLICIES)} others</span>}
    </>
  )
}

interface Span {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/** Full minutes: that of the change belongs to neither. Those of another change are left out. */
function spansOf({ at, since, until }: DocumentChange, now: number): { before: Span; after: Span } {
  const floor = (ms: number) => Math.floor(ms / MINUTE_MS) * MINUTE_MS
  const minute = floor(at)
  return {
    before: { from: Math.max(minute - BESIDE * MINUTE_MS, floor(since) + MINUTE_MS), to: minute },
    after: { from: minute + MINUTE_MS, to: Math.min(minute + (BESIDE + 1) * MINUTE_MS, floor(until), floor(now)) },
  }
}

const minutesIn = ({ from, to }: Span): number => Math.max((to - from) / MINUTE_MS, 0)

interface Refused {
  /** Whether a process has recorded anything in the span. */
  readonly isRecorded: boolean
  readonly refused: number
  /** Undefined where refusals alone are counted. */
  readonly decisions: number | undefined
}

function Effect({ of, policy }: { of: DocumentChange; policy: string }) {
  const { before, after } = spansOf(of, Date.now())
  const [was, is] = [useRefused(of, policy, before), useRefused(of, policy, after)]
  const minutes = minutesIn(after)
  const isOver = of.until < Date.now()
  const isTooEarly = minutes < BESIDE && !isOver
  return (
    <p>
      Refused by limits of <Text>{policy}</Text>: {partText(was, minutesIn(before))} →{' '}
      <span class={!isTooEarly && isWorse(was, is) ? 'worse' : undefined}>{partText(is, minutes)}</span>
      {minutes < BESIDE && (
        <span class="muted">
          {' '}
          {isTooEarly
            ? `too early: ${minutes} of ${BESIDE} minutes`
            : `in ${counted(minutes, 'minute')}, until the next change`}
        </span>
      )}
    </p>
  )
}

const shareIn = ({ refused, decisions = 0 }: Refused): number => refused / Math.max(decisions, 1)

function isWorse(was: Refused | undefined, is: Refused | undefined): boolean {
  return was?.decisions !== undefined && is?.decisions !== undefined && shareIn(is) > shareIn(was) + WORSE
}

function partText(of: Refused | undefined, minutes: number): string {
  if (minutes === 0) return '–'
  if (!of) return '…'
  if (!of.isRecorded) return 'not recorded'
  if (of.decisions === undefined) return `${rate(of.refused / minutes)} refusals a minute`
  return of.decisions === 0 ? 'no decision' : `${share(shareIn(of))} of ${whole(of.decisions)}`
}

/** By recorded traffic; without it, by the figures, which have the refusals of each limit. Undefined until it is known. */
function useRefused(of: DocumentChange, policy: string, { from, to }: Span): Refused | undefined {
  const { policies } = useShell()
  const isAny = to > from
  const body = { from, to: to - 1 }
  const traffic = useAsk<TrafficAnswer>(isAny ? '/api/traffic' : undefined, { ...body, policy, top: 50 }, EVERY_MS)
  const isWithout = traffic.error !== undefined || traffic.answer?.processes === 0
  const past = { ...body, step: 'minute' }
  const history = useAsk<HistoryAnswer>(isAny && isWithout ? '/api/figures/history' : undefined, past, EVERY_MS)
  if (traffic.answer && !isWithout) {
    const entries = traffic.answer.reasons.entries.filter(({ value }) => !NOT_BY_LIMITS.includes(value))
    const sum = (field: 'decisions' | 'refused') => entries.reduce((all, entry) => all + entry[field], 0)
    return { isRecorded: true, refused: sum('refused'), decisions: sum('decisions') }
  }
  if (!history.answer) return undefined
  const all = policies?.documents.find(({ limiter }) => limiter === of.limiter)?.policies ?? []
  const own = all.filter(({ name }) => policyIn(name) === policy).flatMap(({ limits }) => limits)
  const rows = history.answer.rows.filter(
    ({ limit, outcome, reported }) =>
      !reported && !NOT_BY_LIMITS.includes(outcome) && own.some(({ name = policy }) => name === limit),
  )
  return {
    isRecorded: history.answer.processes.some((count) => count > 0),
    refused: rows.flatMap(({ counts }) => counts).reduce((all, count) => all + count, 0),
    decisions: undefined,
  }
}
