import type { Limit } from '@sluice/core'
import { durationText, getOrInsert, kindOf, type StateName, stateNamesOf } from '@sluice/core/internal'
import type { OverrideData, PolicyData, PolicyDocument } from '../document/document.js'
import type { Problem } from '../problems/problem.js'
import { DocumentNames } from './document-names.js'
import { Keys } from './keys.js'
import { changedLimits } from './make-overrides.js'
import { type CompiledPolicy, compilePolicy, variantsOf } from './policy.js'
import { ANY_RESOLVER } from './resolvers.js'

/** A limit that changes in the next version of a document, and whether its used units still count. */
export interface CarriedLimit {
  readonly policy: string
  readonly tier?: string
  /** The index of its override, from 0; in the version before, where it is removed. */
  readonly override?: number
  readonly isRemoved?: boolean
  /** Its name in headers. */
  readonly limit: string
  /** Whether used units count against the new limit, which begins anew otherwise. */
  readonly isKept: boolean
  /** Why it begins anew. */
  readonly why?: string
}

/** The limits of one version for some clients. */
interface ForClients extends Pick<PolicyData, 'consistency'> {
  readonly policy: string
  readonly tier: string | undefined
  readonly override: number | undefined
  readonly limits: readonly Limit[]
}

/** The limits that change between two valid documents. Those of new policies are not among them. */
export function carriedBetween(before: PolicyDocument, after: PolicyDocument): CarriedLimit[] {
  const [old, next] = [new Version(before), new Version(after)]
  const names = new Names()
  const carry = (after.carry ?? 'keep') === (before.carry ?? 'keep') ? after.carry : 'changed'
  const compare = (from: ForClients | undefined, to: ForClients | undefined, details: Partial<CarriedLimit>) => {
    if (!from || !to || from.limits === to.limits) return []
    const { policy, tier } = to
    const found = namedChanges(names.of(from), names.of(to), carry)
    return found.map((each) => ({ policy, ...(tier !== undefined && { tier }), ...details, ...each }))
  }
  const changes: CarriedLimit[] = []
  for (const [client, to] of next.all) {
    const details = to.override === undefined ? {} : { override: to.override }
    changes.push(...compare(old.of(client), to, details))
  }
  for (const [client, from] of old.all) {
    if (from.override === undefined || next.all.has(client)) continue
    changes.push(...compare(from, next.of(client), { override: from.override, isRemoved: true }))
  }
  return changes
}

/** The limits of a version by client: those of the policy itself, or of a tier, and those of each override. */
class Version {
  readonly all = new Map<string, ForClients>()
  /** The limits of equal overrides, made once. */
  readonly #made = new Map<string, ReadonlyMap<string | undefined, readonly Limit[]>>()

  constructor({ policies: data, overrides = [], carry = 'keep' }: PolicyDocument) {
    const keys = new Keys(ANY_RESOLVER)
    const names = new DocumentNames()
    const problems: Problem[] = []
    const policies = new Map<string, CompiledPolicy>()
    for (const [name, each] of Object.entries(data)) {
      const compiled = compilePolicy(name, each, carry, { keys, names }, ANY_RESOLVER, problems)
      if (!compiled) continue
      policies.set(name, compiled)
      for (const { tier, limits } of variantsOf(compiled))
        this.#add(compiled, { tier, override: undefined, limits }, '')
    }
    for (const [index, override] of overrides.entries()) {
      const policy = policies.get(override.policy)
      if (!policy) continue
      for (const [tier, limits] of this.#limitsOf(override, policy, keys, problems)) {
        this.#add(policy, { tier, override: index, limits }, clientOf(override))
      }
    }
  }

  /** The limits of a client in this version. */
  of(id: string): ForClients | undefined {
    return this.all.get(id) ?? this.all.get(JSON.stringify([...JSON.parse(id).slice(0, 2), '']))
  }

  #add({ name, data }: CompiledPolicy, each: Omit<ForClients, 'policy' | 'consistency'>, client: string): void {
    const { consistency } = data
    this.all.set(JSON.stringify([name, each.tier ?? '', client]), {
      ...each,
      policy: name,
      ...(consistency && { consistency }),
    })
  }

  #limitsOf(override: OverrideData, policy: CompiledPolicy, keys: Keys, problems: Problem[]) {
    const id = JSON.stringify([policy.name, override.limits])
    return getOrInsert(this.#made, id, () => changedLimits(override, policy, keys, [], problems).byTier)
  }
}

function clientOf({ key, prefix, range }: OverrideData): string {
  return JSON.stringify(range ?? [key, prefix])
}

interface NamedLimit extends StateName {
  readonly limit: Limit
  /** Whether its counts are relaxed. */
  readonly isRelaxed: boolean
}

/** Limits with the names of their states. The same array for the same limits. */
class Names {
  readonly #known = new Map<readonly Limit[], readonly NamedLimit[]>()

  of({ limits, consistency }: ForClients): readonly NamedLimit[] {
    return getOrInsert(this.#known, limits, () => {
      const states = stateNamesOf(limits, consistency)
      const isRelaxed = consistency !== undefined
      return limits.map((limit, i) => ({ limit, isRelaxed, ...(states[i] as StateName) }))
    })
  }
}

/** The limits that have changed, or begin anew because of others. */
function namedChanges(
  before: readonly NamedLimit[],
  after: readonly NamedLimit[],
  carry: string | undefined,
): Pick<CarriedLimit, 'limit' | 'isKept' | 'why'>[] {
  return after.flatMap((to): Pick<CarriedLimit, 'limit' | 'isKept' | 'why'>[] => {
    const name = to.limit.name as string
    const from = before.find(({ limit }) => limit.name === name)
    const isKept = before.some(({ own, whole }) => own === to.own && whole === to.whole)
    if (isKept) return from && isSame(from.limit, to.limit) ? [] : [{ limit: name, isKept }]
    return [{ limit: name, isKept, why: whyAnew(from, to, before, carry) }]
  })
}

function whyAnew(
  from: NamedLimit | undefined,
  to: NamedLimit,
  before: readonly NamedLimit[],
  carry: string | undefined,
): string {
  if (carry === 'changed') return 'carry was another'
  if (carry !== 'reset' && before.some(({ own }) => own === to.own))
    return 'it shares a key with a limit that is added, removed or begins anew'
  if (!from) return 'it is new'
  const [was, is] = [from.limit, to.limit]
  const kind = was.key?.kind ?? 'key'
  if (kind !== (is.key?.kind ?? 'key')) return `its key was ${kind}`
  if (windowText(was) !== windowText(is)) return `its window was ${windowText(was)}`
  if (kindOf(was.algorithm) !== kindOf(is.algorithm)) return `its algorithm was ${was.algorithm}`
  if (from.isRelaxed !== to.isRelaxed) return `its counts were ${from.isRelaxed ? 'relaxed' : 'exact'}`
  if (was.unit !== is.unit) return `its unit was ${was.unit}`
  if (to.isRelaxed) return 'relaxed counts are stored by their amounts'
  return carry === 'reset' ? 'carry is reset' : 'it is counted in another way'
}

function isSame(one: Limit, other: Limit): boolean {
  return JSON.stringify(resolutionOf(one)) === JSON.stringify(resolutionOf(other))
}

function windowText({ calendar, window }: Limit): string {
  return calendar?.window ?? durationText(window as number)
}

function resolutionOf({ resolve, limit, window }: Limit): ReturnType<Limit['resolve']> {
  return resolve('', limit as number, window as number)
}
