export type { ResolverOf, Resolvers } from './compile/resolvers.js'
export { type LocatedProblem, lineOf, PoliciesError } from './document/problem.js'
export { type PoliciesOptions, policies } from './from.js'
export { Policies, problemsIn } from './policies.js'
