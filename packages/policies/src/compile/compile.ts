import { setImmediate } from 'node:timers/promises'
import type { PolicyDocument } from '../document/document.js'
import type { LimitChanges } from '../limit-changes.js'
import type { Problem } from '../problems/problem.js'
import { CompiledPolicies } from './compiled-policies.js'
import { DocumentNames } from './document-names.js'
import { Keys } from './keys.js'
import { makeOverrides } from './make-overrides.js'
import type { OverrideTable } from './override-table.js'
import { type CompiledPolicy, compilePolicy } from './policy.js'
import type { ANY_RESOLVER, Resolvers } from './resolvers.js'
import { type CheckOverride, TableOverrides } from './table-overrides.js'

export interface Compilation {
  /** Undefined if there are problems. */
  readonly compiled: CompiledPolicies | undefined
  readonly problems: readonly Problem[]
  /** Advice on overrides that may be misunderstood, once for each policy and kind. */
  readonly advice: readonly Problem[]
}

/** Compiles a document that is valid by the schema to policies, or reports all its problems. */
export function compile(document: PolicyDocument, resolvers: Resolvers | typeof ANY_RESOLVER): Compilation {
  const steps = compiling(document, resolvers)
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** Like `compile`, but between requests, as a large document takes seconds. Includes the overrides of a table beside it. */
export async function compileBetween(
  document: PolicyDocument,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  table?: OverrideTable,
  checkOverride?: CheckOverride,
  changes?: LimitChanges,
): Promise<Compilation> {
  const steps = compiling(document, resolvers, table, checkOverride, changes)
  for (const pause = pauses(); ; ) {
    const step = steps.next()
    if (step.done) return step.value
    await pause()
  }
}

/** Returns a function that serves requests in between, where it has been called for long. */
export function pauses(): () => Promise<void> | undefined {
  let until = performance.now() + MAX_AT_ONCE_MS
  return () => {
    if (performance.now() < until) return undefined
    return setImmediate().then(() => {
      until = performance.now() + MAX_AT_ONCE_MS
    })
  }
}

/** The longest wait of requests, but for the last step. */
const MAX_AT_ONCE_MS = 2

function* compiling(
  { policies: data, overrides = [], carry = 'keep' }: PolicyDocument,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  table?: OverrideTable,
  checkOverride?: CheckOverride,
  changes?: LimitChanges,
): Generator<void, Compilation> {
  const problems: Problem[] = []
  const advice: Problem[] = []
  const failed = { compiled: undefined, problems, advice }
  const keys = new Keys(resolvers)
  const names = new DocumentNames()
  const policies = new Map<string, CompiledPolicy>()
  for (const [name, each] of Object.entries(data)) {
    yield
    const policy = compilePolicy(name, each, carry, { keys, names }, resolvers, problems)
    if (policy) policies.set(name, policy)
  }
  if (problems.length > 0) return failed
  const overridesByPolicy = yield* makeOverrides(overrides, policies, keys, problems, advice)
  if (problems.length > 0) return failed
  for (const policy of policies.values()) {
    const policyOverrides = overridesByPolicy.get(policy)
    policy.overrides = table ? new TableOverrides(policy, policyOverrides, table, keys, checkOverride) : policyOverrides
    policy.changes = changes
  }
  const checks = { own: overridesByPolicy, keys, check: checkOverride }
  return { compiled: new CompiledPolicies([...policies.values()], overrides.length, checks), problems, advice }
}
