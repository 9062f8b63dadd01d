import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { ownFieldsOf, propertyOf } from '@sluice/core/internal'
import { Problem } from '../problem.js'
import { hostOf } from './hosts.js'

/** The header that every request with a body has. A page of another origin cannot set it without asking first. */
export const OWN_HEADER = 'sluice-console'

/**
 * Refuses requests that pages of other origins make. Only browsers send `Sec-Fetch-Site` and `Origin`, and pages cannot change
 * them.
 *
 * @throws Problem
 */
export function checkOrigin(raw: IncomingMessage): void {
  const { 'sec-fetch-site': site, origin } = ownFieldsOf(raw.headers)
  // `none`: a person has entered the address, which sends no body.
  if (site !== undefined && site !== 'same-origin' && !(site === 'none' && raw.method !== 'POST')) throw crossSite()
  if (origin !== undefined && !isOwn(origin, raw)) throw crossSite()
}

/**
 * Refuses bodies that a form, or a request without a preflight, could send.
 *
 * @throws Problem
 */
export function checkForm(raw: IncomingMessage): void {
  const headers = ownFieldsOf(raw.headers)
  if (!/^application\/json *(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new Problem(415, 'Content-Type: expected application/json')
  }
  if (headers[OWN_HEADER] !== '1') throw new Problem(403, `expected the header ${OWN_HEADER}: 1`)
}

function isOwn(origin: string, raw: IncomingMessage): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  const isEncrypted = raw.socket && propertyOf(raw.socket as Partial<TLSSocket>, 'encrypted') === true
  return host === hostOf(raw) && (protocol === 'https:' || (protocol === 'http:' && !isEncrypted))
}

function crossSite(): Problem {
  return new Problem(403, 'the request comes from a page of another origin')
}
