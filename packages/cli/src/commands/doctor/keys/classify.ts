import { KEY_LAYOUT } from '../store-needs.js'

export type KeyUse = 'count' | 'block' | 'charge' | 'marker' | 'index' | 'other'

export interface OurKey {
  /** `v1`; `before v1` for keys without a version. */
  readonly layout: string
  readonly use: KeyUse
  /** Undefined for keys that belong to no policy, and for those of another layout. */
  readonly policy?: string
}

/** The kind of a key of this prefix. Undefined for keys of other programs. */
export function classify(key: string, prefix: string): OurKey | undefined {
  if (!key.startsWith(prefix)) return undefined
  const rest = key.slice(prefix.length)
  if (/^\{.*\}:/.test(rest)) return { layout: 'before v1', use: 'other' }
  const [, layout, own = ''] = /^(v\d+):(.*)$/s.exec(rest) ?? []
  if (layout === undefined) return undefined
  if (layout !== KEY_LAYOUT) return { layout, use: 'other' }
  if (own === 'blocked') return { layout, use: 'marker' }
  if (own === 'changes' || /^\{blocks\.\d+\}:/.test(own)) return { layout, use: 'index' }
  // The last refusals, and the figures, that a console shows.
  if (/^\{(console|figures)\}:/.test(own)) return { layout, use: 'other' }
  // The policy may hold colons, its cell holds none.
  const [, policy, cell] = /^\{[^}]*\}:(.*):([^:]+)$/s.exec(own) ?? []
  if (policy === undefined) return { layout, use: 'other' }
  if (cell === 'charges') return { layout, use: 'charge', policy }
  if (policy.endsWith(':charge')) return { layout, use: 'charge', policy: policy.slice(0, -':charge'.length) }
  return { layout, use: cell === 'block' ? 'block' : 'count', policy }
}
