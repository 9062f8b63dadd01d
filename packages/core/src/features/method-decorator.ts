import { policyName } from '../http/adapter/names.js'
import type { IdentityByKind } from '../store/identity.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import type { Limiter } from './limiter.js'

// biome-ignore lint/suspicious/noExplicitAny: methods of any class, with any arguments
type Method = (this: any, ...args: any[]) => any
type Key = string | symbol

/** A decorator for methods that fit `Handler`, in both forms that compilers support. */
export interface HandlerDecorator<Handler extends Method> {
  /** A standard decorator. */
  <This, M extends Handler>(method: M, context: ClassMethodDecoratorContext<This, M>): M
  /** Under `experimentalDecorators`. */
  <M extends Handler>(target: object, key: Key, descriptor: TypedPropertyDescriptor<M>): void
}

/** Finds the limiter of each decorated method, from an object or class that has the method. */
const limiters = new WeakMap<object, (holder: unknown) => Limiter<never>>()

/**
 * Makes an adapter's `@RateLimited`. `make` makes its middleware from options. `enter` runs the middleware, and then
 * `method` if the request is admitted.
 *
 * Without a name of its own the policy is called `Class-method`. A standard decorator learns the class of an instance method
 * only from the first instance. Such a limiter is made then; its options are checked when the decorator is evaluated.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function decoratorFor<
  Handler extends Method,
  Options extends { readonly name?: string },
  L extends { readonly limiter: Limiter<never> },
>(
  options: Options,
  make: (options: Options) => L,
  enter: (limiter: L, method: Handler, args: Parameters<Handler>) => ReturnType<Handler>,
): HandlerDecorator<Handler> {
  function limited(method: unknown, key: Key) {
    if (typeof method !== 'function') invalidPolicy('RateLimited', String(key), 'a method', method)
    const short = (typeof key === 'symbol' ? key.description : key) || 'method'
    let isNamed = options?.name !== undefined
    let limiter = make(isNamed ? options : { ...options, name: policyName(short) })

    /** Names the policy after the object or class that has the method; only the first call counts. */
    const nameAfter = (owner: unknown): void => {
      if (isNamed) return
      limiter = make({ ...options, name: policyName(`${classNameOf(owner, short)}-${short}`) })
      isNamed = true
    }
    /** The limiter, for a method that was reached through this object or class. */
    const find = (holder: unknown): L => {
      if (!isNamed) nameAfter(ownerOf(wrapped, key, holder))
      return limiter
    }
    // Without declared parameters: Express takes a function with four for an error handler.
    const wrapped = function (this: unknown, ...args: Parameters<Handler>): ReturnType<Handler> {
      return enter(find(this), method.bind(this) as Handler, args)
    }
    Object.defineProperty(wrapped, 'name', { value: method.name, configurable: true })
    limiters.set(wrapped, (holder) => find(holder).limiter)
    return { wrapped, nameAfter, find }
  }

  return function rateLimited(...[target, given, descriptor]: [unknown, unknown, PropertyDescriptor?]) {
    if (typeof given === 'string' || typeof given === 'symbol') {
      const { wrapped, nameAfter } = limited(descriptor?.value, given)
      nameAfter(target)
      if (descriptor) descriptor.value = wrapped
      return undefined
    }
    if (typeof given !== 'object' || given === null || !('kind' in given)) {
      invalidPolicy('RateLimited', 'target', 'a method', target)
    }
    const context = given as ClassMethodDecoratorContext
    const { wrapped, find } = limited(context.kind === 'method' ? target : undefined, context.name)
    context.addInitializer(function (this: unknown) {
      find(this)
    })
    return wrapped
  } as HandlerDecorator<Handler>
}

/**
 * Returns the limiter of a method with `@RateLimited`: to peek, reset, block and unblock.
 *
 * @param holder the class's prototype or an instance; for a static method the class itself
 * @example limiterOf(UserController.prototype, 'list').block({ ip: '192.0.2.7' }, { for: '1h' })
 * @throws SluiceError `INVALID_POLICY` where there is no such method
 */
export function limiterOf<Holder extends object>(
  holder: Holder,
  key: keyof Holder & Key,
): Limiter<string | IdentityByKind> {
  // An instance may have a bound copy of its own: `this.list = this.list.bind(this)`.
  for (const at of lineage(holder)) {
    const find = limiters.get(Object.getOwnPropertyDescriptor(at, key)?.value)
    if (find) return find(holder) as Limiter<never> as Limiter<string | IdentityByKind>
  }
  invalidPolicy('limiterOf', String(key), 'a method with @RateLimited as its outermost decorator', holder[key])
}

/** The owner of the method. Not an object that inherits it, such as the first instance of a subclass. */
function ownerOf(method: Method, key: Key, holder: unknown): object | undefined {
  const owners = [...lineage(holder)].filter((at) => Object.hasOwn(at, key))
  const owner = owners.find((at) => Object.getOwnPropertyDescriptor(at, key)?.value === method)
  // Another decorator has wrapped the method: the owner is the last in the lineage that has a method of the name.
  return owner ?? owners.at(-1)
}

function* lineage(holder: unknown): Generator<object> {
  for (let at = holder; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) yield at as object
}

function classNameOf(owner: unknown, method: string): string {
  const named: unknown = typeof owner === 'function' ? owner : (owner as object | undefined)?.constructor
  if (typeof named === 'function' && named.name !== '') return named.name
  const expected = owner ? 'one, as the class has none' : 'one, as the class is unknown until the first new'
  throw new SluiceError('INVALID_POLICY', `RateLimited: name: expected ${expected} (the method is "${method}")`)
}
