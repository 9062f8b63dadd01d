/** Many texts in two arrays that one thread can hand to another at no cost. UTF-16, so any text is kept as it is. */
export interface TextPool {
  readonly units: Uint16Array
  /** Where each text begins, and where the last one ends. */
  readonly offsets: Uint32Array
}

export function poolOf(texts: readonly string[]): TextPool {
  const offsets = new Uint32Array(texts.length + 1)
  let length = 0
  for (let i = 0; i < texts.length; i++) {
    length += (texts[i] as string).length
    offsets[i + 1] = length
  }
  const units = new Uint16Array(length)
  for (let i = 0, at = 0; i < texts.length; i++) {
    const text = texts[i] as string
    for (let n = 0; n < text.length; n++) units[at++] = text.charCodeAt(n)
  }
  return { units, offsets }
}

export function textAt({ units, offsets }: TextPool, index: number): string {
  let text = ''
  for (let i = offsets[index] as number; i < (offsets[index + 1] as number); i++)
    text += String.fromCharCode(units[i] as number)
  return text
}

export function isTextAt({ units, offsets }: TextPool, index: number, text: string): boolean {
  const start = offsets[index] as number
  if ((offsets[index + 1] as number) - start !== text.length) return false
  for (let i = 0; i < text.length; i++) if (units[start + i] !== text.charCodeAt(i)) return false
  return true
}
