import calculateSlot from 'cluster-key-slot'

const SLOTS = 16_384
const LETTERS = 4
const BITS = 4
/** The first of 16 characters that differ in their last bits only: `@` and `A` to `O`. */
const FIRST = '@'.charCodeAt(0)

let texts: Uint16Array | undefined

/** A hash tag of four characters whose keys are in a slot. */
export function tagOf(slot: number): string {
  texts ??= allTexts()
  return textOf(texts[slot] as number)
}

/**
 * The number of a text for each slot. A slot is a checksum that is linear in the bits of a text, so that it is the sum of
 * those of the text's bits. Four such characters reach all slots; five of eight would reach half of them.
 */
function allTexts(): Uint16Array {
  const base = calculateSlot(textOf(0))
  const ofBit = Array.from({ length: LETTERS * BITS }, (_, bit) => calculateSlot(textOf(1 << bit)) ^ base)
  const all = new Uint16Array(SLOTS)
  for (let n = 0; n < 1 << ofBit.length; n++) {
    let slot = base
    for (const [bit, difference] of ofBit.entries()) if ((n >> bit) & 1) slot ^= difference
    all[slot] = n
  }
  return all
}

function textOf(n: number): string {
  let text = ''
  for (let i = 0; i < LETTERS; i++) text += String.fromCharCode(FIRST + ((n >> (i * BITS)) & ((1 << BITS) - 1)))
  return text
}
