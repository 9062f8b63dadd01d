/**
 * `@sluice/core/http`: what an adapter is made of. It describes a framework's request as an `HttpContext`, has a guard
 * decide on it, and puts the outcome on the framework's response.
 */

export { FileWatcher } from '../lists/files/file-watcher.js'
export { stampOf } from '../lists/files/stamp.js'
export type { HttpContext, ProxyTrust, RawResponse } from '../request/context.js'
export { headerText, pathOf, RequestContext } from '../request/context.js'
export { knowFactories } from '../util/factories.js'
export { type Audience, Listeners } from '../util/listeners.js'
export { nearestOf } from '../util/nearest.js'
export { emitWarning } from '../util/warnings.js'
export { type Enforcing, enforce } from './adapter/enforce.js'
export { asFailure } from './adapter/failure.js'
export { decoratorFor, type HandlerDecorator } from './adapter/method-decorator.js'
export { runAfterMiddleware } from './adapter/run-after-middleware.js'
export { runHandler } from './adapter/run-handler.js'
export { writeOutcome } from './adapter/write-outcome.js'
export { holdPermitsUntil } from './charging/permits.js'
export { createGuard, type Guard, type Outcome } from './guard/guard.js'
export { RATE_LIMIT_OPTIONS } from './guard/options.js'
export type { HandlerCall } from './guard/outcome.js'
export type { HeaderField } from './headers/writer.js'
export { noSignedCookies, signedCookieText } from './identity/signed-cookie.js'
export { respondByHandler } from './responders/handler.js'
export type { NativeHandler, Reply } from './responders/responder.js'
export { streamEnd } from './response/handler-end.js'
