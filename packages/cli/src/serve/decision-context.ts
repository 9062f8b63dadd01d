import { type HttpContext, noSignedCookies, pathOf, type RawResponse } from '@sluice/core/http'
import { UNSEEN_RESPONSE } from '@sluice/core/internal'
import type { DescribedRequest } from './described-request.js'

/** A described request in the form of the core, without the decider's own connection. */
export class DecisionContext implements HttpContext<DescribedRequest> {
  readonly request: DescribedRequest
  /** The gateway sends the response: there is none to wait for. */
  readonly response: RawResponse = { ...UNSEEN_RESPONSE }
  readonly sharesResponse = false
  /** Callers settle and release by the ids of decisions. */
  readonly keepsCharges = true
  readonly proxyTrust = 'named'
  readonly proxyRemedy: string
  /** Gateways do not send theirs. */
  readonly route = undefined
  readonly mountedRoute = undefined
  readonly mountPath = ''

  constructor(request: DescribedRequest, proxyRemedy: string) {
    this.request = request
    this.proxyRemedy = proxyRemedy
  }

  get ip(): string | undefined {
    return this.request.ip
  }

  get method(): string {
    return this.request.method
  }

  get path(): string {
    return pathOf(this.request.target)
  }

  get target(): string {
    return this.request.target
  }

  header(name: string): string | undefined {
    return this.request.header(name)
  }

  signedCookie(): never {
    throw noSignedCookies('a decider verifies none')
  }

  getResponseHeader(): undefined {
    return undefined
  }
}
