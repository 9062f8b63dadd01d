/** Keys and bytes in use, counted for a part and for the whole that it belongs to. */
export class Usage {
  keys = 0
  bytes = 0
  readonly #whole: Usage | undefined

  constructor(whole?: Usage) {
    this.#whole = whole
  }

  add(keys: number, bytes: number): void {
    this.keys += keys
    this.bytes += bytes
    this.#whole?.add(keys, bytes)
  }
}

/** Bytes of a row beside its cells and its text: a pointer to the key with its array's spare room, and the head of a chain. */
const ROW_BYTES = 18
/** Bytes that V8 stores before the characters of a string. */
const TEXT_BYTES = 16
const ONE_BYTE = 0xff

/** Bytes of a row of `cells` cells, its link included, with its key. */
export function rowBytes(cells: number, key: string): number {
  return ROW_BYTES + 8 * cells + textBytes(key)
}

/** Bytes of a separate string in V8: one per character, or two if one of them is beyond Latin-1; rounded up to words. */
export function textBytes(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > ONE_BYTE) {
      bytes *= 2
      break
    }
  }
  return TEXT_BYTES + ((bytes + 7) & ~7)
}
