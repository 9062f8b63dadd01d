import { ipRanges } from '@sluice/core'
import { lastRefusalsOf, textValue } from '@sluice/core/internal'
import { BANS, LISTS } from '@sluice/core/store'
import { byKind, containsAddress, counted, type GivenIdentity } from '../identity/identity.js'
import { limitsOf } from '../identity/peeks.js'
import type { CheckedOptions } from '../options.js'
import { networkOf } from '../traffic/decisions.js'
import { HOUR_MS } from '../traffic/top-sink.js'
import type { Traffic } from '../traffic/traffic.js'
import { effectsOf } from './lists.js'
import type { Call } from './route.js'

type Identity = ReturnType<typeof counted>

/** Clients of traffic that are looked at, and entries of a list. */
const MAX_CLIENTS = 50
const MAX_ENTRIES = 1000

interface PlanBody {
  readonly identity: GivenIdentity
  readonly policy?: string
}

/** The effect that a block would have. @throws Problem; SluiceError for an identity that is none */
export async function blockPlan({ console: parts, ip, traffic, body }: Call<PlanBody>) {
  const { identity: given, policy } = body
  const identity = byKind(given)
  const own = counted(identity)
  const isInside = insideOf(own)
  const [before, limits, refusals, decisions] = await Promise.all([
    parts.store[BANS]?.blocks?.get(identity, policy === undefined ? {} : { policy }),
    limitsOf(parts, identity, {}),
    refusalsIn(parts, isInside),
    trafficIn(traffic, own, isInside),
  ])
  return {
    identity: own,
    ...(before && { before }),
    isOwn: containsAddress(identity, ip),
    ...(ip !== undefined && { ownAddress: ip.replace(/^::ffff:(?=\d+\.)/i, '') }),
    allowedBy: limits.flatMap(({ limiter, policy, list }) => {
      const { effect, list: name } = (list ?? {}) as { readonly effect?: string; readonly list?: string }
      return effect === 'allow' ? [{ limiter, ...(policy !== undefined && { policy }), list: name ?? '' }] : []
    }),
    allowedInside: isNetwork(own) ? await entriesIn(parts, isInside) : [],
    refused: refusals,
    ...(decisions && { traffic: decisions }),
  }
}

/** Whether a block of an identity refuses another one, which is it or an address in it. */
function insideOf({ kind, value }: Identity): (other: Identity) => boolean {
  if (kind !== 'ip') return (other) => other.kind === kind && other.value === value
  const ranges = ipRanges([value])
  return (other) =>
    other.kind === kind && ranges.match({ kind, value: other.value.split('/', 1)[0] as string }) !== undefined
}

const lengthOf = (value: string): number => Number(value.split('/')[1] ?? 128)

/** IPv6 is counted by /64. */
const isNetwork = ({ kind, value }: Identity): boolean =>
  kind === 'ip' && value.includes('/') && !(value.includes(':') && lengthOf(value) >= 64)

async function refusalsIn({ store }: CheckedOptions<never>, isInside: (other: Identity) => boolean) {
  const { refusals = [], droppedAt } = (await lastRefusalsOf(store)?.read()) ?? {}
  const clients = new Set<string>()
  let count = 0
  for (const { identities } of refusals) {
    const inside = identities.filter((text) => isInside(textValue(text)))
    for (const text of inside) clients.add(text)
    if (inside.length > 0) count++
  }
  return { clients: clients.size, count, ...(droppedAt !== undefined && { knownSince: droppedAt }) }
}

async function trafficIn(traffic: Traffic, { kind, value }: Identity, isInside: (other: Identity) => boolean) {
  const network = networkOf(`${kind}=${value}`)
  const isWithin = network !== undefined && lengthOf(value) >= lengthOf(network)
  const to = Date.now()
  const read = { from: to - HOUR_MS, to, top: MAX_CLIENTS, ...(isWithin && { network }) }
  // Stores of others may keep none.
  const found = await traffic.read(read).catch(() => undefined)
  if (!found || found.processes === 0) return undefined
  const inside = found.clients.entries.filter(({ client }) => client && isInside(client))
  const sum = (of: 'decisions' | 'refused') => inside.reduce((all, entry) => all + entry[of], 0)
  return { clients: inside.length, count: sum('decisions'), refused: sum('refused') }
}

/** Entries of lists that allow. */
async function entriesIn(parts: CheckedOptions<never>, isInside: (other: Identity) => boolean) {
  const { store, lists } = parts
  const allowing = lists.filter((name) => effectsOf(parts, name).includes('allow'))
  const found = allowing.map(async (list) => {
    const page = await store[LISTS]?.list?.(list).list({ kind: 'ip', max: MAX_ENTRIES })
    return { list, entries: page?.entries.filter(isInside).length ?? 0 }
  })
  return (await Promise.all(found)).filter(({ entries }) => entries > 0)
}
