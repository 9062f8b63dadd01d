import calculateSlot from 'cluster-key-slot'

const SLOTS = 16_384
const LETTERS = 5
const BITS = 3
/** The first of eight letters that differ in their last bits only. */
const FIRST = 'h'.charCodeAt(0)

let texts: Uint16Array | undefined

/** A hash tag of five letters whose keys are in a slot. */
export function tagOf(slot: number): string {
  texts ??= allTexts()
  return textOf(texts[slot] as number)
}

/**
 * The number of a text for each slot. A slot is a checksum that is linear in the bits of a text, so that it is the sum of
 * those of the text's bits. Five such letters reach all slots.
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
  for (let i = 0; i < LETTERS; i++) text += String.fromCharCode(FIRST + ((n >> (i * BITS)) & 7))
  return text
}
