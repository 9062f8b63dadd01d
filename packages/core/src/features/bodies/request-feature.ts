import type { GuardFeature } from '../../http/guard/guard-feature.js'
import { meterResponse, responseBytesFor } from './response-bytes.js'

/** Charges the bytes of responses as they are sent: limits of `response-bytes`, and `onExhausted`. */
export const responseBytes: GuardFeature = {
  guardOptions: ['onExhausted'],
  guard({ where, engine, responders, whenCut }, options) {
    const by = responseBytesFor(where, options, engine, responders, whenCut)
    if (!by) return undefined
    // Bytes of the response are charged when they are sent.
    const none = { responseBytes: 0 }
    return { optionsFor: () => none, serves: (context, verdict) => meterResponse(by, context, verdict) }
  },
}
