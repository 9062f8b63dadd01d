import type { OutboundEvent } from '../../limiter/events.js'
import type { DecisionCount, OutboundCounts } from '../../metrics/snapshot.js'

/**
 * Names of counts in the store: of decisions `policy|limit|code`, of responses of other services `policy||>letter`, of others a text
 * that begins with `=`.
 */

/** Characters of a name: Redis keeps sets of short ones in a tenth of the memory. */
const LONGEST_NAME = 64
/** Names of one process. */
const MAX_NAMES = 256
/** A limit that is called as its policy, as by default. */
const SAME = '='

type Labels = Pick<DecisionCount, 'policy' | 'limit' | 'outcome' | 'source' | 'reported'>

/** A letter for each. One that another version uses is unknown here, and never takes a new meaning. */
const OUTCOMES: Readonly<Record<DecisionCount['outcome'], string>> = {
  admitted: 'a',
  limited: 'l',
  impossible: 'i',
  denied: 'd',
  blocked: 'b',
  banned: 'n',
  unavailable: 'u',
  left: 'g',
}
const SOURCES: Readonly<Record<DecisionCount['source'], string>> = {
  store: 's',
  'deny-cache': 'c',
  lease: 'e',
  relaxed: 'r',
  local: 'o',
  mirror: 'm',
  list: 'i',
  response: 'p',
}
const REPORTED = 'r'

type Outcome = OutboundEvent['outcome']
const RESPONSE = '>'
/** A letter for each outcome, as above. */
const RESPONSES: Readonly<Record<Outcome, string>> = {
  accepted: 'a',
  refused: 'r',
  final: 'f',
  failed: 'x',
  unsent: 'u',
}

/** Processes that reported in a step. */
export const PROCESSES = '=p'
/** Ms in which a store of a process was unavailable. */
export const AWAY = '=a'
/** Followed by the number of a bucket of `DURATION_BOUNDS`: decisions of the store that were measured. */
export const DURATION = '=t'
/** The sum of those durations, in µs. */
export const DURATION_SUM = '=ts'

const OTHER = 'other'

const outcomeOf = new Map(Object.entries(OUTCOMES).map(([outcome, letter]) => [letter, outcome as Labels['outcome']]))
const responseOf = new Map(Object.entries(RESPONSES).map(([outcome, letter]) => [letter, outcome as Outcome]))
const sourceOf = new Map(Object.entries(SOURCES).map(([source, letter]) => [letter, source as Labels['source']]))

/** Gives decisions their names. Each keeps its own, as counts of a name must not fall. */
export class FigureNames {
  readonly #names = new Set<string>()

  of({ policy, limit, outcome, source, reported }: Labels): string {
    const code = OUTCOMES[outcome] + SOURCES[source] + (reported ? REPORTED : '')
    return this.#own(fittingName(policy, limit === policy ? SAME : limit, code))
  }

  /** The responses to calls that a policy limits: those that there were, each with its name. */
  ofResponses(counts: OutboundCounts): [name: string, count: number][] {
    return [...responseOf]
      .filter(([, outcome]) => counts[outcome] > 0)
      .map(([letter, outcome]) => [this.#own(fittingName(counts.policy, '', RESPONSE + letter)), counts[outcome]])
  }

  #own(name: string): string {
    if (this.#names.has(name)) return name
    if (this.#names.size >= MAX_NAMES) return othersOf(name)
    this.#names.add(name)
    return name
  }
}

/** A name that is too long is that of all limits of its policy, or of all policies. */
function fittingName(policy: string, limit: string, code: string): string {
  const [name, ofPolicy] = [`${policy}|${limit}|${code}`, `${policy}|${OTHER}|${code}`]
  if (name.length <= LONGEST_NAME) return name
  return ofPolicy.length <= LONGEST_NAME ? ofPolicy : `${OTHER}||${code}`
}

/** The name of a count for which there is no room: its code alone tells what was decided. */
export function othersOf(name: string): string {
  const at = name.lastIndexOf('|')
  return at < 0 ? name : `${OTHER}||${name.slice(at + 1)}`
}

/** Undefined for a name that is none of this version. */
export function labelsIn(name: string): Labels | undefined {
  const [, policy, limit, outcomeLetter = '', sourceLetter = '', reported] =
    /^([^|]*)\|([^|]*)\|(.)(.)(r?)$/s.exec(name) ?? []
  const outcome = outcomeOf.get(outcomeLetter)
  const source = sourceOf.get(sourceLetter)
  if (name.length > LONGEST_NAME || policy === undefined || limit === undefined || !outcome || !source) return undefined
  return { policy, limit: limit === SAME ? policy : limit, outcome, source, reported: reported === REPORTED }
}

/** Undefined for a name that is none of responses, or of an outcome that this version does not know. */
export function responsesIn(name: string): { readonly policy: string; readonly outcome: Outcome } | undefined {
  const [, policy, letter = ''] = /^([^|]*)\|[^|]*\|>(.)$/s.exec(name) ?? []
  const outcome = responseOf.get(letter)
  return name.length > LONGEST_NAME || policy === undefined || !outcome ? undefined : { policy, outcome }
}
