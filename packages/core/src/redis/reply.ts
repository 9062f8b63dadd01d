import { SluiceError } from '../errors.js'

/**
 * A reply of decide.lua: at least `length` whole numbers, and after them the reasons of blocks as texts.
 * Anything else was not said by the script, but by a proxy, a module, another script, or a broken
 * connection: nobody may be admitted by it, nor told numbers that nobody counted.
 *
 * @throws SluiceError `STORE_UNAVAILABLE`
 */
export function checkedReply(reply: unknown, length: number): readonly unknown[] {
  if (Array.isArray(reply) && reply.length >= length && isOfScript(reply, length)) return reply
  throw new SluiceError('STORE_UNAVAILABLE', 'redis: expected the reply of our script, got something else')
}

function isOfScript(reply: readonly unknown[], length: number): boolean {
  for (let i = 0; i < length; i++) if (!Number.isSafeInteger(reply[i])) return false
  for (let i = length; i < reply.length; i++) if (typeof reply[i] !== 'string') return false
  return true
}
