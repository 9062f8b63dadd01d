import type { HttpContext, KeyValue } from '@sluice/core'

/** A function of a request. `request` is what the framework hands to its handlers. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export type ResolverOf<Value> = (request: any, context: HttpContext<any>) => Value | PromiseLike<Value>

/** Stands for resolvers of every name: for what checks a document without the code that registers them. */
export const ANY_RESOLVER = 'any'

/** Functions, which a document cannot hold, by their names in documents. */
export interface Resolvers {
  /** Keys by their kind: `{ user: (req) => req.user?.id }` is what `key: user` counts. */
  readonly keys?: Readonly<Record<string, ResolverOf<KeyValue | null | undefined>>>
  /** Functions that name the tier of a request, for `tier:`. */
  readonly tiers?: Readonly<Record<string, ResolverOf<string>>>
  /** Units that a request takes, for `cost:`. */
  readonly costs?: Readonly<Record<string, ResolverOf<number>>>
}
