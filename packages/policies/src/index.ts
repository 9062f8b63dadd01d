export type { ResolverOf, Resolvers } from './compile/resolvers.js'
export { type LocatedProblem, PoliciesError } from './document/problem.js'
export { type PoliciesOptions, policies } from './from.js'
export { Policies, problemsIn } from './policies.js'
