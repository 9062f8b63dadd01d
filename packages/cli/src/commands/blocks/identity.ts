import type { IdentityByKind } from '@sluice/core'
import { UsageError } from '../../program/usage-error.js'

/**
 * The identity that an argument names: `ip=192.0.2.7`, `user=ann`.
 *
 * @throws UsageError where it is none, or a secret, which would show in process lists
 */
export function identityOf(text: string): IdentityByKind {
  const equals = text.indexOf('=')
  const kind = text.slice(0, Math.max(0, equals))
  const value = text.slice(equals + 1)
  if (kind === '' || value === '')
    throw new UsageError(`expected KIND=VALUE, such as ip=192.0.2.7, got ${JSON.stringify(text)}`)
  if (/^(header|cookie):/.test(kind)) {
    throw new UsageError(`${kind}: arguments show in process lists, and this is a secret: use store.blocks in code`)
  }
  return { [kind]: value }
}
