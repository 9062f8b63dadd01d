/**
 * `@sluice/core/http`: what an adapter is made of. It describes a framework's request as an `HttpContext`, has a guard
 * decide on it, and puts the outcome on the framework's response.
 */
export type { HttpContext, RawResponse } from '../request/context.js'
export { headerText, pathOf, RequestContext } from '../request/context.js'
export { enforce } from './adapter/enforce.js'
export { asFailure } from './adapter/failure.js'
export { decoratorFor, type HandlerDecorator } from './adapter/method-decorator.js'
export { type Passage, runBehind } from './adapter/run-behind.js'
export { handledBy } from './charging/permits.js'
export { createGuard, type Guard, type Outcome } from './guard/guard.js'
export { RATE_LIMIT_OPTIONS } from './guard/options.js'
export type { HeaderField } from './headers/writer.js'
export { warnOfOpenProxy } from './identity/open-proxy.js'
export { noSignedCookies, signedCookieText } from './identity/signed-cookie.js'
export type { Reply } from './responders/responder.js'
export { streamEnd } from './response/handler-end.js'
