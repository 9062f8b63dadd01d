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

const BETWEEN = '.'

/** The id of a request whose policies have charged one after the other: those of all its charges. */
export function joinedIds(ids: readonly string[]): string {
  return ids.join(BETWEEN)
}

/** The ids of the charges that an id names, each once. */
export function idsIn(id: string): readonly string[] {
  return [...new Set(id.split(BETWEEN))]
}
