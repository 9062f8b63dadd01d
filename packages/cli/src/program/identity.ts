import type { IdentityByKind } from '@sluice/core'
import { isKind, isSecretKind, quoted } from '@sluice/core/internal'
import { UsageError } from './usage-error.js'

/**
 * The identity that an argument names: `ip=192.0.2.7`, `user=ann`; of a composed kind `ip+route=["192.0.2.7","/login"]`.
 *
 * @throws UsageError where it is none, or a secret, which would show in process lists
 */
export function identityOf(text: string): IdentityByKind {
  const equals = text.indexOf('=')
  const kind = text.slice(0, Math.max(0, equals))
  const value = text.slice(equals + 1)
  if (kind === '' || value === '')
    throw new UsageError(`expected KIND=VALUE, such as ip=192.0.2.7, got ${quoted(text)}`)
  if (!isKind(kind)) throw new UsageError(`expected KIND=VALUE with a kind such as ip or user, got ${quoted(kind)}`)
  if (isSecretKind(kind)) {
    throw new UsageError(
      `${kind}: arguments show in process lists, and this is a secret: use the store's methods in code`,
    )
  }
  return { [kind]: kind.includes('+') ? valuesOf(kind, value) : value }
}

function valuesOf(kind: string, text: string): readonly string[] {
  const count = kind.split('+').length
  try {
    const values: unknown = JSON.parse(text)
    if (Array.isArray(values) && values.length === count) return values.map(String)
  } catch {
    // As below.
  }
  throw new UsageError(
    `${kind}: expected ${count} values as a JSON array, such as '${kind}=["a","b"]', got ${JSON.stringify(text)}`,
  )
}
