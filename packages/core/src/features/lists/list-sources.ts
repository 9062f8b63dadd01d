import { byCookie, byHeader } from '../../http/identity/extractors.js'
import { addressOf, byIp } from '../../http/identity/ip.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { ListSources } from './listed-subjects.js'

/** Further kinds of identities that lists may hold: every request has an address, and may have headers and cookies. */
export const REQUEST_LISTS: ListSources<unknown> = {
  addressOf: (_request, context) => addressOf(context),
  moreKeys: keyOfKind,
  moreKinds: ['ip', 'header:…', 'cookie:…'],
  denyOptions: ['respond'],
}

const made = new Map<string, KeyFunction<unknown> | undefined>()

function keyOfKind(kind: string): KeyFunction<unknown> | undefined {
  if (!made.has(kind)) made.set(kind, makeKey(kind))
  return made.get(kind)
}

function makeKey(kind: string): KeyFunction<unknown> | undefined {
  if (kind === 'ip') return byIp()
  const [, source, name] = /^(header|cookie):(.+)$/s.exec(kind) ?? []
  if (source === undefined || name === undefined) return undefined
  try {
    // The decoded name, as `kindOfName` escapes characters that a kind may not contain.
    const key = source === 'header' ? byHeader(decodeURIComponent(name)) : byCookie(decodeURIComponent(name))
    // A kind in another spelling never occurs in a request.
    return key.kind === kind ? key : undefined
  } catch {
    return undefined
  }
}
