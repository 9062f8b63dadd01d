import type { PolicyDocument } from '../document/document.js'
import type { Problem } from '../document/problem.js'
import { checkSchema } from '../schema/check.js'
import { CompiledPolicies } from './compiled-policies.js'
import { Keys } from './keys.js'
import { addOverrides } from './make-overrides.js'
import { type CompiledPolicy, compilePolicy } from './policy.js'
import type { ANY_RESOLVER, Resolvers } from './resolvers.js'

export interface Compilation {
  /** Undefined where there are problems. */
  readonly compiled: CompiledPolicies | undefined
  readonly problems: readonly Problem[]
}

/** Makes policies of the value of a document, or says everything that is wrong with it. */
export function compile(value: unknown, resolvers: Resolvers | typeof ANY_RESOLVER): Compilation {
  const problems = checkSchema(value)
  if (problems.length > 0) return { compiled: undefined, problems }
  const { policies: data, overrides = [] } = value as PolicyDocument
  const keys = new Keys(resolvers)
  const policies = Object.entries(data).map(([name, each]) => compilePolicy(name, each, keys, resolvers, problems))
  if (problems.length > 0) return { compiled: undefined, problems }
  addOverrides(
    overrides,
    new Map((policies as CompiledPolicy[]).map((policy) => [policy.name, policy])),
    keys,
    problems,
  )
  if (problems.length > 0) return { compiled: undefined, problems }
  return { compiled: new CompiledPolicies(policies as CompiledPolicy[], overrides.length), problems }
}
