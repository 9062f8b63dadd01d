import type { Verdict } from '@sluice/core'
import type { HttpContext, RawResponse } from '@sluice/core/http'
import {
  type DecisionRecorder,
  decisionIn,
  identitiesIn,
  identityIn,
  propertyOf,
  type ReadablePlan,
  sentStatus,
  whenOver,
} from '@sluice/core/internal'
import type { RecordedRequest } from './form.js'
import type { HashedAddress, Hashes } from './hashes.js'
import { lineOf } from './line.js'

type Context = HttpContext<unknown>

/** Longer texts of clients are cut. */
const LONGEST = { method: 32, host: 255, path: 1024 } as const
/** Identities that are longer are known by their hash alone, so that no piece of a path can be compared with them. */
const LONGEST_IDENTITY = 256
/** Kinds of one request. More than that no policy has. */
const MAX_KINDS = 32
/** Units that no cost names. */
const UNPRICED = new Set(['content-bytes', 'response-bytes', 'concurrent-requests'])
/** The status of a client that has left, as nginx has it. */
const LEFT = 499
/** Kinds whose values are in the other fields, or are of nobody. */
const PUBLIC = new Set(['everyone', 'anonymous', 'path', 'route', 'method', 'ip'])

/** Makes a record of each request that limiters decide on, once its response has ended. */
export class Recorder implements DecisionRecorder {
  readonly #hashes: Hashes
  readonly #write: (line: string) => void
  readonly #open = new Map<object, OpenRequest>()
  #lastMs = 0
  #ofLastMs = 0

  constructor(hashes: Hashes, write: (line: string) => void) {
    this.#hashes = hashes
    this.#write = write
  }

  decided(verdict: Verdict, isRefused: boolean, context: Context | undefined): void {
    if (!context) return
    // Each field of a GraphQL query is a request of its own.
    const id = propertyOf(context, 'sharesResponse') ? context : context.response
    const known = this.#open.get(id)
    const request = known ?? new OpenRequest(context, this.#timeOf(verdict))
    request.add(verdict, isRefused)
    if (known) return
    this.#open.set(id, request)
    // A socket may stay open for days: its message is recorded once the decisions of this turn are made.
    if (isMessage(context)) setImmediate(() => this.#end(id, undefined, false))
    else whenOver(context.response, () => this.#end(id, statusOf(context.response), true))
  }

  /** A request ends whose response others send. `status`: of a refusal. */
  ended({ response }: Context, status: number | undefined): void {
    this.#end(response, status, false)
  }

  /** Records the requests whose response has not ended. */
  endAll(): void {
    for (const id of this.#open.keys()) this.#end(id, undefined, false)
  }

  #end(id: object, status: number | undefined, isSeen: boolean): void {
    const request = this.#open.get(id)
    if (!request) return
    this.#open.delete(id)
    const record = request.record(this.#hashes, status, isSeen)
    if (record) this.#write(lineOf(record))
  }

  /** Where the store has decided, by its clock. Requests of one ms differ in their decimals, in the order of their decisions. */
  #timeOf(verdict: Verdict): number {
    const { result, by } = decisionIn(verdict)
    const date = by.kind === 'decided' ? (result.date ?? result.now) : 0
    const ms = Math.floor(date > 0 ? date : Date.now())
    this.#ofLastMs = ms === this.#lastMs ? Math.min(this.#ofLastMs + 1, MAX_OF_MS) : 0
    this.#lastMs = ms
    return ms + this.#ofLastMs / 1000
  }
}

const MAX_OF_MS = 999

/** A request that was decided on. */
class OpenRequest {
  readonly #time: number
  readonly #from = performance.now()
  readonly #context: Context
  readonly #ip: string | undefined
  /** The texts of its identities. */
  readonly #identities = new Set<string>()
  #outcome = 'admitted'
  #reported: string | undefined
  #by: RecordedRequest['by']
  #tiers: Record<string, string> | undefined
  #costs: Record<string, Record<string, number>> | undefined

  constructor(context: Context, time: number) {
    this.#time = time
    this.#context = context
    // A connection that is closed has lost it.
    this.#ip = context.ip
  }

  add(verdict: Verdict, isRefused: boolean): void {
    const decision = decisionIn(verdict)
    for (const identity of identitiesIn(decision)) this.#identities.add(identity)
    const { reason, reported, tier, kind } = verdict
    if (kind !== 'decided') this.#by = kind === 'listed' ? 'list' : 'process'
    if (reported) this.#reported ??= reason
    else if (isRefused || reason === 'left') this.#outcome = reason ?? this.#outcome
    const { costs } = decision.request
    const { cellOf, definitions, units, policy } = decision.request.plan as ReadablePlan
    for (const [i, cell] of cellOf.entries()) {
      // Policies that are data are decided as one, and named by policy and tier.
      const [name = policy, ofLimit = tier] = definitions[i]?.policy?.split('.', 2) ?? []
      if (ofLimit !== undefined) this.#tiers = { ...this.#tiers, [name]: ofLimit }
      const [unit, cost] = [units[cell] as string, costs[cell] as number]
      if ((unit === 'requests' && cost === 1) || UNPRICED.has(unit)) continue
      this.#costs = { ...this.#costs, [name]: { ...this.#costs?.[name], [unit]: cost } }
    }
  }

  /** Undefined for one that is not recorded. */
  record(hashes: Hashes, status: number | undefined, isSeen: boolean): RecordedRequest | undefined {
    const { ids, isPartLost } = this.#ids()
    const address = hashes.ofAddress(this.#ip, ids.get('ip'))
    if (!isRecorded(hashes, address, this.#identities)) return undefined
    const { method, path, route } = this.#context
    const host = this.#context.header('host') ?? this.#context.header(':authority')
    ids.delete('ip')
    const named = [...ids].filter(([kind]) => !PUBLIC.has(kind)).slice(0, MAX_KINDS)
    return {
      time: this.#time,
      duration: isSeen ? Math.round((performance.now() - this.#from) * 1000) / 1000 : undefined,
      method: method.slice(0, LONGEST.method),
      host: host?.slice(0, LONGEST.host),
      path: withoutIdentities(path, named, isPartLost, hashes).slice(0, LONGEST.path),
      route,
      status,
      outcome: this.#outcome,
      reported: this.#reported,
      by: this.#by,
      ip: address && address.hashes.length > 0 ? address.hashes : undefined,
      ids:
        named.length > 0 ? Object.fromEntries(named.map(([kind, value]) => [kind, hashes.of(kind, value)])) : undefined,
      tiers: this.#tiers,
      costs: this.#costs,
    }
  }

  /** Its identities by simple kinds, and whether those of a long composed key are missing, of which only a hash is known. */
  #ids(): { readonly ids: Map<string, string>; readonly isPartLost: boolean } {
    const ids = new Map<string, string>()
    let isPartLost = false
    for (const text of this.#identities) {
      const { kind, value } = identityIn(text)
      if (typeof value !== 'string')
        for (const [i, part] of kind.split('+').entries()) ids.set(part, value[i] as string)
      else if (kind.includes('+')) isPartLost = true
      else ids.set(kind, value)
    }
    return { ids, isPartLost }
  }
}

function isRecorded(hashes: Hashes, address: HashedAddress | undefined, identities: ReadonlySet<string>): boolean {
  if (address) return address.isRecorded
  const [first = ''] = identities
  return hashes.isRecorded(first)
}

/** A path whose pieces are no identities of its request. `isPartLost`: whether it has identities that are not in `ids`. */
function withoutIdentities(
  path: string,
  ids: readonly (readonly [kind: string, value: string])[],
  isPartLost: boolean,
  hashes: Hashes,
): string {
  const kinds = new Map(ids.map(([kind, value]) => [value, kind]))
  return path
    .split('/')
    .map((piece) => {
      const value = decoded(piece)
      if (value.length > LONGEST_IDENTITY) return '~long'
      const kind = kinds.get(value) ?? (isPartLost && value !== '' ? 'path' : undefined)
      return kind === undefined ? piece : `~${hashes.of(kind, value)}`
    })
    .join('/')
}

function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Whether it is a message over a socket, which has no response of its own. */
function isMessage(context: Context): boolean {
  return propertyOf(context, 'sharesResponse') === true && context.response.statusCode === undefined
}

function statusOf(response: RawResponse): number | undefined {
  // An upgrade that was accepted is sent past Node's response.
  if (response.headersSent === false) return sentStatus(response) ?? LEFT
  return response.writableFinished === false ? LEFT : response.statusCode
}
