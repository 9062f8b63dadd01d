// @ts-check
// A stand-in for the application: its accounts, and the functions that read and check a login.
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** @type {(password: string, salt: Buffer, length: number) => Promise<Buffer>} */
const hash = promisify(scrypt)

/** @param {string} password */
async function stored(password) {
  const salt = randomBytes(16)
  return { salt, hash: await hash(password, salt, 32) }
}

const accounts = new Map([
  ['ann', await stored('correct horse')],
  ['bob', await stored('battery staple')],
])
const unknown = await stored(randomBytes(16).toString('hex'))

/** Takes as long for accounts that do not exist, so that the time does not show which do.
 *
 * @param {string} account @param {string} password
 */
export async function isPassword(account, password) {
  const known = accounts.get(account) ?? unknown
  return timingSafeEqual(await hash(password, known.salt, 32), known.hash)
}

/**
 * An account and a password, in the spelling that limiter and accounts share. Undefined for any other body.
 *
 * @param {unknown} body
 * @returns {{ account: string, password: string } | undefined}
 */
export function loginIn(body) {
  const { account, password } = /** @type {Record<string, unknown>} */ (body ?? {})
  if (typeof account !== 'string' || typeof password !== 'string') return undefined
  const name = account.trim().toLowerCase()
  return name === '' ? undefined : { account: name, password }
}
