import type { ComponentChildren } from 'preact'
import type { FiguresAnswer } from '../../src/figures/answers.js'
import type { About, PoliciesAnswer, Refusal } from '../answers.js'
import { Text, Time, WhoOf } from '../parts/basics.js'
import { rate, share, whole } from '../parts/format.js'

/** Refusals of one client among the last ones that are worth a look, and their share. */
const MANY_REFUSALS = 20
const MOST_REFUSALS = 0.5
/** The share of decisions that are refusals, and the rate of decisions from which it says something. */
const HIGH_SHARE = 0.25
const ENOUGH_DECISIONS = 2

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
  readonly refusals: readonly Refusal[] | undefined
}

export function attentionOf({ about, policies, figures, refusals }: Known): readonly Attention[] {
  return [...ofStore(about), ...ofFigures(figures), ...ofDocuments(policies), ...ofRefusals(refusals ?? [])]
}

function* ofStore({ store }: About): Generator<Attention> {
  if (store.state === 'available') return
  yield {
    key: 'store',
    tone: 'bad',
    text: (
      <>
        The store is away
        {store.since !== undefined && (
          <>
            {' '}
            since <Time at={store.since} />
          </>
        )}
        . Each process decides by its option <code>unavailable</code>; blocks and bans that it knows hold.{' '}
        {store.cause && <Text>Cause: {store.cause}.</Text>}
      </>
    ),
  }
}

function* ofFigures(figures: FiguresAnswer | undefined): Generator<Attention> {
  if (!figures) return
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
  if (perSecond.decisions >= ENOUGH_DECISIONS && refused > HIGH_SHARE) {
    yield { key: 'share', tone: 'warn', text: `${share(refused)} of the decisions of the last second are refusals.` }
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
