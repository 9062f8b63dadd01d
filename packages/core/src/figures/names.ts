import type { DecisionCount } from '../metrics/snapshot.js'
import { MAX_FIGURE_NAMES } from '../store/figures.js'

/** Names of counts in the store: of decisions `policy|limit|code`, of others a text that begins with `=`. */

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

/** Processes that reported in a step. */
export const PROCESSES = '=p'
/** Ms in which a store of a process was unavailable. */
export const AWAY = '=a'
/** Followed by the number of a bucket of `DURATION_BOUNDS`: decisions of the store that were measured. */
export const DURATION = '=t'
/** The sum of those durations, in µs. */
export const DURATION_SUM = '=ts'

const LONGEST_NAME = 64
const OTHER = 'other'

const outcomeOf = new Map(Object.entries(OUTCOMES).map(([outcome, letter]) => [letter, outcome as Labels['outcome']]))
const sourceOf = new Map(Object.entries(SOURCES).map(([source, letter]) => [letter, source as Labels['source']]))

/** Gives decisions their names. Each keeps its own, as counts of a name must not fall. */
export class FigureNames {
  readonly #names = new Set<string>()

  of({ policy, limit, outcome, source, reported }: Labels): string {
    const code = OUTCOMES[outcome] + SOURCES[source] + (reported ? REPORTED : '')
    const name = `${fitting(policy)}|${fitting(limit)}|${code}`
    if (this.#names.has(name)) return name
    if (this.#names.size >= MAX_FIGURE_NAMES) return othersOf(name)
    this.#names.add(name)
    return name
  }
}

/** A name with a separator, or that is longer than ours, is one of the others. */
function fitting(name: string): string {
  return name.length > LONGEST_NAME || /[|\p{Cc}]/u.test(name) ? OTHER : name
}

/** The name of a count for which there is no room: its code alone tells what was decided. */
export function othersOf(name: string): string {
  const at = name.lastIndexOf('|')
  return at < 0 ? name : `${OTHER}||${name.slice(at + 1)}`
}

/** Undefined for a name that is none of this version. */
export function labelsIn(name: string): Labels | undefined {
  const [, policy, limit, outcomeLetter = '', sourceLetter = '', reported] =
    /^([^|]{0,64})\|([^|]{0,64})\|(.)(.)(r?)$/s.exec(name) ?? []
  const outcome = outcomeOf.get(outcomeLetter)
  const source = sourceOf.get(sourceLetter)
  if (policy === undefined || limit === undefined || !outcome || !source) return undefined
  return { policy, limit, outcome, source, reported: reported === REPORTED }
}
