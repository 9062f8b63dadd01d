import { wrongPolicy } from './errors.js'

/** Functions that make keys and responders, each with the call to write. */
const calls = new WeakMap<object, string>()

/** Registers factories, each by its call: `{ 'byIp()': byIp }`. */
export function knowFactories(byCall: Readonly<Record<string, object>>): void {
  for (const [call, factory] of Object.entries(byCall)) calls.set(factory, call)
}

/**
 * Refuses a factory that was handed over without its call: it is a function as well, and would fail with each request.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function refuseFactory(where: string, field: string, value: unknown): void {
  const call = typeof value === 'function' ? calls.get(value) : undefined
  if (call === undefined) return
  const [name] = call.split('(', 1)
  wrongPolicy(`${where}: ${field}: write ${call}: expected what ${name} returns, got ${name} itself`)
}

/**
 * Refuses a request in place of options. A framework was then given the function that makes a middleware or a hook, and calls
 * it with `next` or `done` as the last argument.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function refuseUncalled(call: string, rest: readonly unknown[]): void {
  if (typeof rest.at(-1) !== 'function') return
  const [name] = call.split('(', 1)
  const why = `as the framework was given ${name} itself and not what it returns`
  wrongPolicy(`write ${call}: expected options, got a request, ${why}`)
}
