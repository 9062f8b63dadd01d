import { createHmac, randomBytes } from 'node:crypto'
import type { Identity } from '../store/identity.js'
import { wrongPolicy } from '../util/errors.js'
import { oneOf } from '../util/validate.js'

export interface KeyOptions {
  /**
   * How keys of clients are written: `'hmac'`, `'plain'`, or `'none'` for the kind alone.
   *
   * By `hmac`, lines about one client are found without revealing it.
   * @default 'hmac'
   */
  readonly keys?: 'hmac' | 'plain' | 'none'
  /**
   * For `hmac`: a secret text of 16 characters or more.
   *
   * With the same one, processes write the same for a client, also after a restart.
   * @default a random one of this process
   */
  readonly secret?: string
}

const SHORTEST_SECRET = 16
/** Characters of 6 bits each: two clients do not share them by chance. */
const HMAC_LENGTH = 16

/**
 * How the key of a client is written to a log. A plain hash would be no secret: there are only so many addresses to try.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function keyTexts(where: string, options: KeyOptions): (identity: Identity) => string {
  const { keys: form = 'hmac', secret } = options
  const keys = oneOf(where, 'keys', form, ['hmac', 'plain', 'none'])
  if (secret !== undefined && keys !== 'hmac') {
    wrongPolicy(`${where}: secret: expected none beside keys "${keys}"`)
  }
  if (secret !== undefined && (typeof secret !== 'string' || secret.length < SHORTEST_SECRET)) {
    // Not shown: it is a secret.
    wrongPolicy(`${where}: secret: expected a string of ${SHORTEST_SECRET} characters or more`)
  }
  if (keys === 'none') return ({ kind }) => kind
  if (keys === 'plain') return plainText
  const hmacKey = secret ?? randomBytes(32)
  return (identity) => {
    const digest = createHmac('sha256', hmacKey).update(plainText(identity)).digest('base64url')
    return `${identity.kind}:${digest.slice(0, HMAC_LENGTH)}`
  }
}

/** The value of a composed kind is JSON, so that different keys are different texts. */
export function plainText({ kind, value }: Identity): string {
  return `${kind}:${typeof value === 'string' ? value : JSON.stringify(value)}`
}
