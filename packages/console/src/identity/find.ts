import type { IdentityByKind } from '@sluice/core'
import { lastRefusalsOf } from '@sluice/core/internal'
import { BANS, OFFENDERS } from '@sluice/core/store'
import type { CheckedOptions } from '../options.js'
import { blocksOf, byKind, counted, listsOf, namesOf } from './identity.js'
import { clientKinds } from './kinds.js'
import { limitsOf, type ShownLimits } from './peeks.js'

/** A client that a text may mean. */
export interface Candidate {
  readonly kind: string
  readonly value: string | readonly string[]
  /** Whether a limit has counted it, or a block, a list or a refusal names it. */
  readonly isKnown: boolean
}

/** Kinds that are tried. */
const MAX_KINDS = 32

/** The clients that a text may mean: of each kind that it fits, those that are known first. */
export async function candidatesFor(parts: CheckedOptions<never>, given: string): Promise<readonly Candidate[]> {
  const text = given.trim()
  const kinds = await clientKinds(parts)
  const fitting = identitiesIn(text, kinds).slice(0, MAX_KINDS)
  const all = await Promise.all(fitting.map(async (each) => ({ ...each, isKnown: await isKnown(parts, byKind(each)) })))
  // A text that is an address is one, unless it is known as something else.
  const isAddress = all.some(({ kind }) => kind === 'ip')
  const possible = isAddress ? all.filter((each) => each.kind === 'ip' || each.isKnown) : all
  return possible.sort((one, other) => Number(other.isKnown) - Number(one.isKnown))
}

/** `user=ann` and `user ann` name the kind. A composed kind has as many words as parts. */
function identitiesIn(text: string, kinds: readonly string[]): Omit<Candidate, 'isKnown'>[] {
  const [, named = '', rest = ''] = /^([^\s=]+)[\s=]+(.+)$/s.exec(text) ?? []
  const all = kinds.includes(named) ? [{ kind: named, text: rest }] : kinds.map((kind) => ({ kind, text }))
  return all.flatMap(({ kind, text }) => {
    const parts = kind.split('+').length
    const values = text.split(/\s+/)
    if (parts > 1 && values.length !== parts) return []
    const identity = { kind, value: parts > 1 ? values : text }
    return isPossible(identity) ? [identity] : []
  })
}

function isPossible(identity: Omit<Candidate, 'isKnown'>): boolean {
  try {
    counted(byKind(identity))
    return true
  } catch {
    return false
  }
}

async function isKnown(parts: CheckedOptions<never>, identity: IdentityByKind): Promise<boolean> {
  const { kind, value } = counted(identity)
  const [limits, blocks, lists, kept] = await Promise.all([
    limitsOf(parts, identity, {}),
    blocksOf(parts, identity),
    listsOf(parts, identity),
    lastRefusalsOf(parts.store)?.read(),
  ])
  const isRefused = kept?.refusals.some(({ identities }) => identities.includes(`${kind}=${value}`))
  return isRefused === true || blocks.length + lists.length > 0 || limits.some(hasCounted)
}

/** Whether anything of a limit is used, or it is changed for the client alone. */
function hasCounted({ limits = [], override }: ShownLimits): boolean {
  return override !== undefined || limits.some(({ resetAfterMs }) => resetAfterMs > 0)
}

/** A client that was refused of late, or is blocked: as it is counted. */
export interface Suggestion {
  readonly kind: string
  readonly value: string
  /** Its refusals that are recorded, or counted in the last hour. */
  readonly refusals: number
  readonly isBlocked: boolean
}

const MAX_SUGGESTIONS = 8
/** Policies whose offenders are read, and offenders of each. */
const MAX_POLICIES = 8
const MAX_OFFENDERS = 20
const MAX_BLOCKS = 100

/** Clients whose kind or value contains a text: refused, blocked or among the offenders. Those with the most refusals first. */
export async function suggestionsFor(parts: CheckedOptions<never>, given: string): Promise<readonly Suggestion[]> {
  const wanted = given.trim().toLowerCase()
  const found = new Map<string, Suggestion>()
  const note = (kind: string, value: string, refusals: number, isBlocked: boolean) => {
    const text = `${kind}=${value}`
    if (kind === 'everyone' || !text.toLowerCase().includes(wanted)) return
    const known = found.get(text)
    found.set(text, {
      kind,
      value,
      refusals: Math.max(known?.refusals ?? 0, refusals),
      isBlocked: isBlocked || known?.isBlocked === true,
    })
  }
  const { store } = parts
  const [kept, blocks, ...reports] = await Promise.all([
    lastRefusalsOf(store)?.read(),
    store[BANS]?.blocks?.list({ max: MAX_BLOCKS }),
    ...namesOf(parts)
      .slice(0, MAX_POLICIES)
      .map((policy) => offendersOf(parts, policy)),
  ])
  for (const [text, count] of countsIn(kept?.refusals ?? [])) {
    const end = text.indexOf('=')
    note(text.slice(0, end), text.slice(end + 1), count, false)
  }
  for (const { kind, value } of blocks?.entries ?? []) note(kind, value, 0, true)
  for (const { kind, value, refusals } of reports.flat()) note(kind, value, refusals, false)
  const all = [...found.values()]
  return all.sort((one, other) => other.refusals - one.refusals).slice(0, MAX_SUGGESTIONS)
}

async function offendersOf({ store }: CheckedOptions<never>, policy: string) {
  const offenders = store[OFFENDERS]
  if (!offenders?.note) return []
  return (await offenders.report({ policy, in: '1h', top: MAX_OFFENDERS })).offenders
}

function countsIn(refusals: readonly { readonly identities: readonly string[] }[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of refusals.flatMap(({ identities }) => identities)) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}
