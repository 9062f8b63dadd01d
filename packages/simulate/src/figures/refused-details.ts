import { unnamedPath } from '@sluice/core/internal'
import type { RecordContext } from '../replay/record-context.js'
import type { RefusedClient } from '../report.js'
import { agentText } from './agent-text.js'

/** Clients of one kind whose details are known. Beyond it, those with the fewest refusals are forgotten. */
const MAX_CLIENTS = 20_000
/** Refusals of a client whose paths are looked at, and different paths. */
const MAX_LOOKED_AT = 500
const MAX_PATHS = 50
const SHOWN_PATHS = 5

export type DetailsReport = Pick<RefusedClient, 'agent' | 'paths' | 'statuses'>

/** What the refused requests of one client have been. */
class Details {
  refusals = 0
  readonly agent: string | undefined
  readonly #paths = new Map<string, number>()
  readonly #statuses = new Map<number | '-', number>()

  constructor(agent: string | undefined) {
    this.agent = agent
  }

  note({ request }: RecordContext): void {
    this.refusals++
    add(this.#statuses, request.status ?? '-')
    if (this.refusals > MAX_LOOKED_AT || request.target === undefined) return
    const path = unnamedPath(request.target)
    if (this.#paths.size < MAX_PATHS || this.#paths.has(path)) add(this.#paths, path)
  }

  report(): DetailsReport {
    const all = [...this.#paths].sort(([, a], [, b]) => b - a)
    const paths = all.slice(0, SHOWN_PATHS).map(([path]) => path)
    return { agent: this.agent, paths, statuses: Object.fromEntries(this.#statuses) }
  }
}

/** Details of refused clients by a number, for a bounded number of them. */
export class RefusedDetails {
  readonly #byClient = new Map<number, Details>()

  note(client: number, context: RecordContext): void {
    let details = this.#byClient.get(client)
    if (!details) {
      if (this.#byClient.size >= MAX_CLIENTS) this.#forgetHalf()
      const { agent } = context.request
      details = new Details(agent === undefined ? undefined : agentText(agent))
      this.#byClient.set(client, details)
    }
    details.note(context)
  }

  of(client: number): DetailsReport {
    return this.#byClient.get(client)?.report() ?? { agent: undefined, paths: [], statuses: {} }
  }

  #forgetHalf(): void {
    const all = [...this.#byClient].sort(([, a], [, b]) => a.refusals - b.refusals)
    for (const [key] of all.slice(0, MAX_CLIENTS / 2)) this.#byClient.delete(key)
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
