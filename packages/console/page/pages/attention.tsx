import type { ComponentChildren } from 'preact'
import type { FiguresAnswer } from '../../src/figures/answers.js'
import type { About, PoliciesAnswer, Refusal } from '../answers.js'
import { Text, Time, WhoOf } from '../parts/basics.js'
import { rate, share, whole } from '../parts/format.js'
import { withoutRecords } from '../parts/refusals.js'
import type { RefusedSince } from './refused-since.js'

/** Refusals of one client among the last ones that are worth a look, and their share. */
const MANY_REFUSALS = 20
const MOST_REFUSALS = 0.5

/** A sentence about something that an operator may have to do. */
export interface Attention {
  readonly key: string
  readonly tone: 'bad' | 'warn' | 'plain'
  readonly text: ComponentChildren
}

interface Known {
  readonly about: About
  readonly policies: PoliciesAnswer | undefined
  readonly figures: FiguresAnswer | undefined
  /** Since when the share of refusals needs attention. */
  readonly refusedSince: RefusedSince | undefined
  readonly refusals: readonly Refusal[] | undefined
}

export function attentionOf({ about, policies, figures, refusedSince, refusals }: Known): readonly Attention[] {
  return [...ofFigures(about, figures, refusedSince), ...ofDocuments(policies), ...ofRefusals(refusals ?? [])]
}

function* ofFigures(
  { store }: About,
  figures: Known['figures'],
  since: RefusedSince | undefined,
): Generator<Attention> {
  // Of before an outage, which stands above every page.
  if (!figures || store.state === 'unavailable') return
  const { away, perSecond } = figures.sum
  if (away > 0)
    yield {
      key: 'away',
      tone: 'bad',
      text: `The store is away for ${away === 1 ? 'one process' : `${whole(away)} processes`}.`,
    }
  if (perSecond.alone > 0) {
    yield {
      key: 'alone',
      tone: 'warn',
      text: `${rate(perSecond.alone)} decisions a second are made without the store.`,
    }
  }
  const refused = perSecond.refused / Math.max(perSecond.decisions, 1)
  if (since !== undefined) {
    yield {
      key: 'share',
      tone: 'warn',
      text: (
        <>
          Since <Time at={since.at} />, up to {share(since.most)} of the decisions of a second were refusals; in the
          last second, {share(refused)}.
        </>
      ),
    }
  }
  const silent = withoutRecords(figures)
  if (silent.length > 0) {
    yield {
      key: 'records',
      tone: 'plain',
      text: (
        <>
          Refusals of {silent.join(', ')} are not recorded: call <code>recordRefusals(store)</code> there.
        </>
      ),
    }
  }
  for (const note of figures.notes) yield { key: note, tone: 'plain', text: note }
}

function* ofDocuments(policies: PoliciesAnswer | undefined): Generator<Attention> {
  for (const { limiter, error } of policies?.documents ?? []) {
    if (error === undefined) continue
    yield {
      key: `document ${limiter}`,
      tone: 'bad',
      text: (
        <>
          The document of <Text>{limiter}</Text> has an error, and its last good version decides: <Text>{error}</Text>
        </>
      ),
    }
  }
}

function* ofRefusals(refusals: readonly Refusal[]): Generator<Attention> {
  const counts = new Map<string, number>()
  for (const identity of refusals.flatMap(({ identities }) => identities)) {
    if (!identity.startsWith('everyone')) counts.set(identity, (counts.get(identity) ?? 0) + 1)
  }
  const [most] = [...counts].sort(([, a], [, b]) => b - a)
  if (!most) return
  const [identity, count] = most
  if (count < MANY_REFUSALS || count < refusals.length * MOST_REFUSALS) return
  yield {
    key: 'client',
    tone: 'warn',
    text: (
      <>
        <WhoOf text={identity} /> has {count} of the last {refusals.length} refusals.
      </>
    ),
  }
}
