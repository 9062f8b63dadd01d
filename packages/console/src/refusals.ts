import { type DecisionEvent, events, type Store } from '@sluice/core'
import {
  decidingPolicies,
  decisionIn,
  identitiesIn,
  type LastRefusal,
  type LastRefusals,
  lastRefusalsOf,
  sayRecording,
} from '@sluice/core/internal'
import { OncePerStore } from './once-per-store.js'
import { jsonText } from './reply.js'
import { OWN_LIMITER } from './safe/own-limiter.js'

/** Refusals of one answer. */
const MAX_SHOWN = 1000
/** Bytes of these: an answer has room for other fields beside them. */
const MAX_BYTES = 3_145_728
const LONGEST_PATH = 256

const recorded = new OncePerStore()

/**
 * Has this process note its last 200 refusals for consoles on this store, also those of other processes and of `sluice console`.
 * It writes them to the store each second, only while a console is open. Consoles call it by themselves. It ends once all who
 * started it have called the function that this returns.
 */
export function recordRefusals(store: Store): () => void {
  const refusals = lastRefusalsOf(store)
  if (!refusals) return () => {}
  return recorded.start(store, () => ({ stop: noteIn(refusals) }))
}

function noteIn(refusals: LastRefusals): () => void {
  const off = events.on('refused', (event) => {
    if (event.policy !== OWN_LIMITER) refusals.note(refusalOf(event))
  })
  const stop = sayRecording()
  return () => {
    off()
    stop()
  }
}

function refusalOf({ limit, path, outcome, verdict }: DecisionEvent): LastRefusal {
  const decision = decisionIn(verdict)
  return {
    at: Date.now(),
    // Those of a document are decided as one limiter.
    policy: decidingPolicies(decision).join(', '),
    ...(limit !== undefined && { limit }),
    reason: outcome,
    ...(path !== undefined && { path: path.slice(0, LONGEST_PATH) }),
    identities: [...identitiesIn(decision)],
  }
}

/** Refusals of an answer, newest first. */
export interface ShownRefusals {
  readonly refusals: readonly LastRefusal[]
  /** Set where the answer has no room for the older ones. */
  readonly more?: true
  /** Refusals before it, in ms since 1970, are not all known: a process keeps its last 200. Absent if all of 15 minutes are. */
  readonly knownSince?: number
}

/** The last refusals that are known of an identity as text, or of all, as far as they fit. */
export async function refusalsOf(store: Store, identity?: string): Promise<ShownRefusals> {
  const { refusals: all, droppedAt } = (await lastRefusalsOf(store)?.read()) ?? NOTHING
  const own = identity === undefined ? all : all.filter(({ identities }) => identities.includes(identity))
  let bytes = 0
  // Names may be long, and a character of theirs six in the answer.
  const end = own.findIndex((refusal, i) => {
    bytes += jsonText(refusal).length + 1
    return i === MAX_SHOWN || bytes > MAX_BYTES
  })
  const refusals = end < 0 ? own : own.slice(0, end)
  const since = Math.max(droppedAt ?? 0, (end < 0 ? undefined : own[end]?.at) ?? 0)
  return { refusals, ...(end >= 0 && { more: true }), ...(since > 0 && { knownSince: since }) }
}

const NOTHING = { refusals: [], droppedAt: undefined }
