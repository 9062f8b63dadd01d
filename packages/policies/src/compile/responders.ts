import { degrade, delay, pass, queue, type Responder, reject, tarpit, throttle } from '@sluice/core'
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

/** @throws SluiceError `INVALID_POLICY` */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export function makeResponder(data: RespondData): Responder<any> {
  const [name, options] = typeof data === 'string' ? [data, {}] : (Object.entries(data)[0] as [string, object])
  return (RESPONDERS[name] as NonNullable<(typeof RESPONDERS)[string]>)({ ...options })
}
