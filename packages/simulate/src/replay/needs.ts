import type { ReadDocument } from '@sluice/policies'
import { SimulationError } from '../simulation-error.js'
import type { RecordContext } from './record-context.js'

/** Something of a request that a policy reads. */
interface Need {
  readonly policy: string
  /** As messages name it. */
  readonly field: string
  /** How a user can provide it. */
  readonly remedy: string
  readonly isKnown: (context: RecordContext) => boolean
  /** Whether it is one of the headers. */
  readonly isHeader?: boolean
}

interface Limits {
  readonly key?: unknown
  readonly algorithm?: string
  readonly unit?: string
}

interface PolicyParts {
  readonly match?: {
    readonly paths?: unknown
    readonly methods?: unknown
    readonly hosts?: unknown
    readonly headers?: Readonly<Record<string, unknown>>
  }
  readonly key?: unknown
  readonly limits?: readonly Limits[]
  readonly tiers?: Readonly<Record<string, readonly Limits[]>>
  readonly count?: unknown
  readonly ban?: { readonly count?: unknown }
  readonly allow?: object
  readonly deny?: object
}

/**
 * Checks that the first requests of a log have what the policies of a document read. Something that none of them has is not in
 * the log.
 *
 * @throws SimulationError with each policy and field
 */
export function checkNeeds(document: ReadDocument, contexts: readonly RecordContext[]): void {
  const missing = needsOf(document).filter(({ isKnown }) => !contexts.some(isKnown))
  if (missing.length === 0) return
  const lines = missing.map(
    ({ policy, field, remedy }) => `policy "${policy}" needs ${field}, which the log lacks: ${remedy}`,
  )
  throw new SimulationError([...new Set(lines)].join('\n'))
}

/** Whether policies of a document look at headers of requests. */
export function readsHeaders(document: ReadDocument): boolean {
  return needsOf(document).some(({ isHeader }) => isHeader)
}

/** A policy that counts clients by their address. Undefined if none does. */
export function policyByAddress(document: ReadDocument): string | undefined {
  return needsOf(document).find(({ field }) => field === ADDRESS)?.policy
}

function needsOf({ policies = {}, overrides = [] }: ReadDocument): Need[] {
  const needs = Object.entries(policies).flatMap(([policy, parts]) => ofPolicy(policy, parts as PolicyParts))
  for (const { policy, key = {}, prefix = {} } of overrides as readonly Override[]) {
    for (const kind of Object.keys({ ...key, ...prefix })) needs.push(...ofKey(policy, kind))
  }
  return needs
}

interface Override {
  readonly policy: string
  readonly key?: object
  readonly prefix?: object
}

function ofPolicy(
  policy: string,
  { match, key, limits = [], tiers = {}, count, ban, allow, deny }: PolicyParts,
): Need[] {
  const all = [...limits, ...Object.values(tiers).flat()]
  const needs: Need[] = []
  const add = (field: string, remedy: string, isKnown: Need['isKnown']) =>
    needs.push({ policy, field, remedy, isKnown })
  if (match?.paths) {
    add('the path', '--format with the field "target", or $request', ({ request }) => request.target !== undefined)
  }
  if (match?.methods) {
    add('the method', '--format with the field "method", or $request', ({ request }) => request.method !== undefined)
  }
  if (match?.hosts) needs.push({ ...ofHeader(policy, 'host'), field: 'the host', remedy: '--assume host=NAME' })
  for (const name of Object.keys(match?.headers ?? {})) needs.push(ofHeader(policy, name.toLowerCase()))
  if (count !== undefined || ban?.count !== undefined) {
    add('the status', '--assume status=NUMBER', ({ status }) => status !== undefined)
  }
  if (all.some(({ algorithm }) => algorithm === 'concurrency')) {
    const known = ({ request, reading }: RecordContext) =>
      request.durationMs !== undefined || reading.assumed.durationMs !== undefined
    add('the duration of requests', '--assume duration=TIME', known)
  }
  if (all.some(({ unit }) => unit === 'response-bytes')) {
    const known = ({ request, reading }: RecordContext) => (request.bytes ?? reading.assumed.bytes) !== undefined
    add('the bytes of responses', '--assume bytes=NUMBER', known)
  }
  if (all.some(({ unit }) => unit === 'content-bytes')) {
    add('the bytes of requests', '--field content-bytes=FIELD', ({ reading }) => reading.fields.has('content-bytes'))
  }
  for (const kind of new Set([key, ...all.map((limit) => limit.key)].flat())) {
    if (kind !== undefined) needs.push(...ofKey(policy, kind))
  }
  for (const kind of Object.keys({ ...allow, ...deny })) needs.push(...ofKey(policy, kind))
  if (all.some((limit) => (limit.key ?? key) === undefined)) needs.push(...ofKey(policy, 'ip'))
  return needs
}

const ADDRESS = "the client's address"

function ofKey(policy: string, kind: unknown): Need[] {
  if (typeof kind === 'object' || kind === 'ip') {
    return [{ policy, field: ADDRESS, remedy: '--client FIELD', isKnown: hasAddress }]
  }
  const [, source, name] = /^(header|cookie):(.+)$/.exec(String(kind)) ?? []
  if (source === 'header') return [ofHeader(policy, String(name).toLowerCase())]
  if (source === 'cookie') {
    const isKnown = (context: RecordContext) => context.header('cookie') !== undefined
    return [{ policy, field: `the cookie ${name}`, remedy: `--field cookie:${name}=FIELD`, isKnown, isHeader: true }]
  }
  if (kind === 'credentials') return [ofHeader(policy, 'authorization')]
  if (kind === 'route') {
    const isKnown = ({ route }: RecordContext) => route !== undefined
    return [{ policy, field: 'the route', remedy: '--field route=FIELD, or --assume route=NAME', isKnown }]
  }
  if (kind !== 'user') return []
  const isKnown = ({ request, reading }: RecordContext) =>
    request.user !== undefined || reading.assumed.user !== undefined || reading.fields.has('user') || reading.hasUser
  return [{ policy, field: 'the user', remedy: '--field user=FIELD, or --resolvers FILE', isKnown }]
}

function hasAddress({ request, reading }: RecordContext): boolean {
  return reading.addressOf(request) !== undefined
}

function ofHeader(policy: string, name: string): Need {
  return {
    policy,
    field: `the header ${name}`,
    remedy: `--field header:${name}=FIELD, or --assume header:${name}=VALUE`,
    isKnown: (context) => context.header(name) !== undefined,
    isHeader: true,
  }
}
