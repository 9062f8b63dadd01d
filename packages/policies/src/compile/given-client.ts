import type { GivenClient, HttpContext } from '@sluice/core'
import { hasOwn, type MaybePromise, valueFor } from '@sluice/core/internal'
import { type CountedOf, countedIn } from './counted-of.js'
import { contextFor } from './explain.js'
import { variantBy } from './overrides.js'
import type { Variant } from './policy.js'

/** The variant of a policy for a client that is given by hand: `base`, where no override is for it. */
export function variantForClient(base: Variant, client: GivenClient): MaybePromise<Variant> {
  const { overrides } = base.policy
  if (!overrides) return base
  const { context, countedOf } = hasOwn(client, 'request') ? ofRequest(client.request) : ofIdentity(client)
  return variantBy(overrides.find(context, countedOf), base)
}

interface GivenValues {
  // biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
  readonly context: HttpContext<any>
  readonly countedOf: CountedOf
}

function ofRequest(request: unknown): GivenValues {
  const context = contextFor({ path: '/', request })
  return { context, countedOf: countedIn(context) }
}

function ofIdentity({ kind, value }: { readonly kind: string; readonly value: unknown }): GivenValues {
  const kinds = kind.split('+')
  const values = kinds.length === 1 ? [value] : Array.isArray(value) ? (value as unknown[]) : []
  const textOf = (wanted: string): string | undefined => {
    const value = values[kinds.indexOf(wanted)]
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
      ? String(value)
      : undefined
  }
  // A group of addresses is looked up by its first address.
  const ip = textOf('ip')?.trim().split('/', 1)[0]
  return {
    context: { ...contextFor({ path: '/' }), ip },
    countedOf: (wanted, key) => {
      const text = textOf(wanted)
      return text === undefined
        ? undefined
        : valueFor('overrides', key, { kind: wanted, value: text, isCounted: false })
    },
  }
}
