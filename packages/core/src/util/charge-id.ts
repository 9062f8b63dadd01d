import { randomFillSync } from 'node:crypto'

const BYTES = 16
const random = Buffer.alloc(256 * BYTES)
let used = random.length

/** 128 random bits as text of 22 characters: whoever guesses one could change another's charge. */
export function chargeId(): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  used += BYTES
  return random.toString('base64url', used - BYTES, used)
}

/** The length of such a text. */
export const CHARGE_ID_LENGTH = 22
