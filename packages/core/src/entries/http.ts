/**
 * `@sluice/core/http`: the parts of an adapter. An adapter describes a framework's request as an `HttpContext`, has a guard
 * decide on it, and puts the outcome on the framework's response.
 */

export { createGuard, type Guard } from '../features/composed.js'
export { type InheritingOptions, inheritOptions } from '../features/inherit-options.js'
export { decoratorFor, type HandlerDecorator } from '../features/method-decorator.js'
export { RATE_LIMIT_OPTIONS } from '../features/options.js'
export { type Enforcing, enforce } from '../http/adapter/enforce.js'
export { asFailure } from '../http/adapter/failure.js'
export { freeName } from '../http/adapter/names.js'
export { runAfterMiddleware } from '../http/adapter/run-after-middleware.js'
export { runHandler } from '../http/adapter/run-handler.js'
export { writeOutcome } from '../http/adapter/write-outcome.js'
export { holdPermitsUntil } from '../http/charging/permit-holder.js'
export { setKeyRemedy } from '../http/guard/invalid.js'
export type { HandlerCall, Outcome } from '../http/guard/outcome.js'
export type { HeaderField } from '../http/headers/writer.js'
export { noSignedCookies, signedCookieText } from '../http/identity/signed-cookie.js'
export { respondByHandler } from '../http/responders/pass.js'
export type { NativeHandler, Reply } from '../http/responders/responder.js'
export { streamEnd } from '../http/response/handler-end.js'
export type { HttpContext, ProxyTrust, RawResponse } from '../request/context.js'
export { headerText, pathOf, RequestContext, unreadablePath } from '../request/context.js'
export { knowFactories, refuseUncalled } from '../util/factories.js'
export { propertyOf } from '../util/property-of.js'
export { knownOptions, refusePolluted } from '../util/validate.js'
