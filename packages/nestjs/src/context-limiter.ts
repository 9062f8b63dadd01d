import type { ExecutionContext } from '@nestjs/common'
import { type HttpContext, SluiceError } from '@sluice/core'
import { createGuard, setKeyRemedy } from '@sluice/core/http'
import { emitWarning, isPropertyOf, ownFieldsOf } from '@sluice/core/internal'
import { asException } from './exceptions.js'
import { asFieldError, checkForFields, fieldContext, proceedOrThrow } from './graphql.js'
import { guardsOf, type HandlerType } from './handlers.js'
import { enforcerFor, type NestGuard, type PlatformContext, platformContext, setHeader, setVerdict } from './http.js'
import { asMessageError, checkForMessages, checkForSubscriptions } from './messages.js'
import type { NestLimiter, NestRateLimitOptions, SocketOptions } from './options.js'
import { messageContext, SocketContext } from './socket-context.js'

type Decision = boolean | Promise<boolean>

const EXECUTION = Symbol('execution')

/** The types of contexts of Nest's own calls, without those of microservices. */
const LIMITED: ReadonlySet<string> = new Set(['http', 'graphql', 'ws'])
/** Types of contexts that the process has warned about. */
const warnedOf = new Set<string>()

/** Warns that messages of a transport are not limited. An error instead would lose them, or have brokers send them for ever. */
function warnOf(type: string): void {
  if (warnedOf.has(type)) return
  warnedOf.add(type)
  emitWarning(
    'SLUICE_UNLIMITED_CONTEXT',
    `SluiceGuard: messages of the type "${type}" pass, and are not limited: guards limit HTTP, GraphQL and WebSockets ` +
      '(@SkipRateLimit() on their handlers silences this)',
  )
}

/**
 * The execution context of Nest of a call that a limiter decides on, for functions that need more of it than the request:
 * `(request, context) => executionContextOf(context)?.getArgs()`. Undefined for paths without a route.
 */
export function executionContextOf(context: HttpContext): ExecutionContext | undefined {
  return (context as { [EXECUTION]?: ExecutionContext })[EXECUTION]
}

/** @internal One limiter, for every kind of call that Nest guards. */
export class ContextLimiter {
  readonly #guard: NestGuard
  readonly #options: NestRateLimitOptions & SocketOptions
  readonly #enforce: (context: PlatformContext, next: (...failure: unknown[]) => void) => void
  /** Requests, fields and messages that it has decided on: a guard may be global and on the route. */
  readonly #decided = new WeakSet<object>()
  /** Whether it decides in a global guard, before the guards of handlers. */
  #isGlobal = false
  static #anyHoldsPermits = false

  /** @throws SluiceError `INVALID_POLICY` */
  constructor({ socketAddress, ...options }: NestRateLimitOptions & SocketOptions) {
    if (socketAddress !== undefined && typeof socketAddress !== 'function') {
      throw new SluiceError('INVALID_POLICY', 'rateLimit: socketAddress: expected a function')
    }
    this.#guard = createGuard(options)
    this.#options = ownFieldsOf({ ...options, socketAddress })
    this.#enforce = enforcerFor(this.#guard)
    ContextLimiter.#anyHoldsPermits ||= this.#guard.holdsPermits
  }

  /** Whether any limiter of this process so far holds permits until handlers are done. */
  static get anyHoldsPermits(): boolean {
    return ContextLimiter.#anyHoldsPermits
  }

  get limiter(): NestLimiter {
    return this.#guard.limiter
  }

  /** Resolves to true if the call may proceed. Throws or rejects with an exception if not; never settles where it has replied. */
  decide(execution: ExecutionContext): Decision {
    const type = execution.getType<string>()
    if (!LIMITED.has(type)) {
      warnOf(type)
      return true
    }
    const args = execution.getArgs()
    // One request may have many fields: each is a call of its own.
    const call: object = type === 'http' ? args[0] : args
    if (this.#decided.has(call)) return true
    this.#decided.add(call)
    if (type === 'http') return this.#decideHttp(withExecution(platformContext(args[0], args[1]), execution))
    if (type === 'graphql') return this.#decideField(execution)
    return this.#decideMessage(execution)
  }

  /** The same for a request whose path has no route. */
  decideUnknownPath(request: object, response: object): Decision {
    if (this.#decided.has(request)) return true
    this.#decided.add(request)
    const context = platformContext(request, response)
    Object.defineProperties(context, { route: { value: '(no route)' }, mountedRoute: { value: undefined } })
    return this.#decideHttp(context)
  }

  /**
   * Checks that the limiter can decide on calls of a type.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  checkFor(type: HandlerType): void {
    if (type === 'graphql' || type === 'field') checkForFields(this.#options, this.#guard)
    else if (type === 'subscription') checkForSubscriptions(this.#options, this.#guard)
    else if (type === 'ws') checkForMessages(this.#options, this.#guard)
  }

  /** Called where a global guard decides by it. */
  decidesGlobally(): void {
    this.#isGlobal = true
  }

  #decideHttp(context: PlatformContext): Decision {
    if (this.#isGlobal) setKeyRemedy(context as HttpContext, remedyOfGuards)
    return untilNext(
      (next) => this.#enforce(context, next),
      (error) => {
        const exception = asException(error)
        if (exception === error) return error
        const { headers = {} } = ownFieldsOf(error as { headers?: Readonly<Record<string, string>> })
        for (const [name, value] of Object.entries(headers)) setHeader(context, name, value)
        return exception
      },
    )
  }

  async #decideField(execution: ExecutionContext): Promise<boolean> {
    try {
      const context = withExecution(fieldContext(contextOf(execution.getArgs()), this.#options), execution)
      this.checkFor(context instanceof SocketContext ? 'subscription' : 'graphql')
      const outcome = await this.#guard(context)
      setVerdict(context, this.#guard.requestProperty, outcome.verdict)
      return proceedOrThrow(outcome)
    } catch (error) {
      throw asFieldError(error)
    }
  }

  async #decideMessage(execution: ExecutionContext): Promise<boolean> {
    try {
      this.checkFor('ws')
      const context = withExecution(messageContext(execution, this.#options), execution)
      return proceedOrThrow(await this.#guard(context))
    } catch (error) {
      throw await asMessageError(error)
    }
  }
}

/** The context among the arguments of a resolver. Those of references and of types get no arguments of a field before it. */
function contextOf([, second, third, fourth]: readonly unknown[]): unknown {
  // The info of a field comes last, but for the type that a resolver of types is about.
  const isOfField = fourth !== undefined && !isPropertyOf(fourth as object, 'resolveType')
  return isOfField ? third : second
}

/** The remedy where a key may depend on a guard that comes later. */
function remedyOfGuards(context: HttpContext): string | undefined {
  const execution = executionContextOf(context)
  const guards = [execution?.getHandler(), execution?.getClass()].flatMap((at) => (at ? guardsOf(at) : []))
  if (guards.every((guard) => (guard as { name?: string }).name === 'SluiceGuard')) return undefined
  return (
    'SluiceGuard is global and decides before the guards of the handler: for a key that depends on them, use @SkipRateLimit() ' +
    'and @UseGuards(TheirGuard, rateLimitGuard({ … }))'
  )
}

function withExecution<Context extends object>(context: Context, execution: ExecutionContext): Context {
  ;(context as { [EXECUTION]?: ExecutionContext })[EXECUTION] = execution
  return context
}

/**
 * Waits until middleware calls `next`. Throws or rejects with `failureOf` its error. Never settles where the middleware has
 * sent a response instead: whatever Nest would do then, it would do it to a response that is sent.
 */
function untilNext(
  middleware: (next: (...failure: unknown[]) => void) => void,
  failureOf: (error: unknown) => unknown,
) {
  let called: readonly unknown[] | undefined
  let wake: ((failure: readonly unknown[]) => void) | undefined
  middleware((...failure) => {
    called = failure
    wake?.(failure)
  })
  const settle = (failure: readonly unknown[]): true => {
    if (failure.length > 0) throw failureOf(failure[0])
    return true
  }
  if (called) return settle(called)
  return new Promise<readonly unknown[]>((resolve) => {
    wake = resolve
  }).then(settle)
}
