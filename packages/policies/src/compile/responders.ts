import { degrade, delay, pass, queue, type Responder, reject, tarpit, throttle } from '@sluice/core'
import { getOrInsert } from '@sluice/core/internal'
import type { RespondData } from '../document/document.js'

// biome-ignore lint/suspicious/noExplicitAny: options are checked by the schema, and by each of these
const RESPONDERS: Readonly<Record<string, (options: any) => Responder<any>>> = {
  reject,
  pass,
  degrade,
  delay,
  queue,
  tarpit,
  throttle,
}

/** Those of a policy. Its overrides and tiers share them, so that a responder's `maxConnections` bounds all of its clients. */
export class RespondersOfPolicy {
  // biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
  readonly #made = new Map<string, Responder<any>>()

  /**
   * @param limit the name of the limit that it is of; empty for that of all
   * @throws SluiceError `INVALID_POLICY`
   */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  make(limit: string, data: RespondData): Responder<any> {
    const id = JSON.stringify([limit, data])
    return getOrInsert(this.#made, id, () => makeResponder(data))
  }
}

/** @throws SluiceError `INVALID_POLICY` */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export function makeResponder(data: RespondData): Responder<any> {
  const [name, options] = typeof data === 'string' ? [data, {}] : (Object.entries(data)[0] as [string, object])
  return (RESPONDERS[name] as NonNullable<(typeof RESPONDERS)[string]>)({ ...options })
}
