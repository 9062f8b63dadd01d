import { copied } from '../formats/texts.js'
import type { RecordContext } from '../replay/record-context.js'
import type { Split, SplitReport } from '../report.js'
import { PathGroups } from './path-groups.js'

/** Rows of a table, and groups that are counted apart. */
const SHOWN = 12
const MAX_GROUPS = 1000
const OTHER = 'other'
const MAX_AGENTS = 10_000

const CRAWLER = /bot\b|bot[/;-]|crawl|spider|slurp|preview|monitor|facebookexternalhit/i

interface Counts {
  requests: number
  refused: number
}

/** Requests, and those that policies refuse or would refuse, by groups of paths, statuses and kinds of clients. */
export class Splits {
  readonly #byPaths = new Map<string, Counts>()
  readonly #byStatus = new Map<string, Counts>()
  readonly #byClient = new Map<string, Counts>()
  readonly #paths = new PathGroups()
  readonly #kinds = new Map<string, string>()

  count({ path, status, request: { agent }, isRefused }: RecordContext): void {
    add(this.#byPaths, this.#paths.patternOf(path) ?? OTHER, isRefused)
    add(this.#byStatus, status === undefined ? 'none' : String(status), isRefused)
    add(this.#byClient, this.#kindOf(agent), isRefused)
  }

  report(): SplitReport {
    return { byPaths: listOf(this.#byPaths), byStatus: listOf(this.#byStatus), byClient: listOf(this.#byClient) }
  }

  #kindOf(agent: string | undefined): string {
    if (agent === undefined || agent === '' || agent === '-') return 'no user agent'
    let kind = this.#kinds.get(agent)
    if (kind === undefined) {
      kind = CRAWLER.test(agent) ? 'crawlers' : agent.startsWith('Mozilla/') ? 'browsers' : 'programs'
      if (this.#kinds.size >= MAX_AGENTS) this.#kinds.clear()
      this.#kinds.set(copied(agent), kind)
    }
    return kind
  }
}

function add(counts: Map<string, Counts>, name: string, isRefused: boolean): void {
  let found = counts.get(name)
  if (!found) {
    if (counts.size >= MAX_GROUPS && name !== OTHER) return add(counts, OTHER, isRefused)
    found = { requests: 0, refused: 0 }
    counts.set(name, found)
  }
  found.requests++
  if (isRefused) found.refused++
}

/** Those with the most refusals first, then with the most requests. */
function listOf(counts: ReadonlyMap<string, Counts>): readonly Split[] {
  return [...counts]
    .map(([name, each]) => ({ name, ...each }))
    .sort((a, b) => b.refused - a.refused || b.requests - a.requests)
    .slice(0, SHOWN)
}
