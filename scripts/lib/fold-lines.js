/**
 * Texts in which no passage is written twice. Parts that are text are new lines. Parts `[from, count]` repeat `count` lines
 * from the `from`th new one on, of this text or one before.
 *
 * @typedef {(string | [from: number, count: number])[]} Folded
 */

/** Passages of fewer characters are written again. */
const SHORTEST_REPEAT = 100

/**
 * @param {Record<string, string>} texts
 * @returns {Record<string, Folded>}
 */
export function foldLines(texts) {
  /** @type {string[]} every new line so far */
  const known = []
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, foldOne(text.split('\n'), known)]))
}

/**
 * @param {string[]} lines
 * @param {string[]} known gets what is new
 * @returns {Folded}
 */
function foldOne(lines, known) {
  /** @type {Folded} */
  const parts = []
  /** @type {string[]} */
  let fresh = []
  const flush = () => {
    if (fresh.length > 0) parts.push(fresh.join('\n'))
    fresh = []
  }
  for (let i = 0; i < lines.length; ) {
    const [from, count] = longestRepeat(lines, i, known)
    if (lines.slice(i, i + count).join('\n').length < SHORTEST_REPEAT) {
      const line = String(lines[i++])
      fresh.push(line)
      known.push(line)
    } else {
      flush()
      parts.push([from, count])
      i += count
    }
  }
  flush()
  return parts
}

/**
 * @param {string[]} lines
 * @param {number} i
 * @param {string[]} known
 * @returns {[from: number, count: number]}
 */
function longestRepeat(lines, i, known) {
  let longest = /** @type {[number, number]} */ ([0, 0])
  for (let from = known.indexOf(String(lines[i])); from >= 0; from = known.indexOf(String(lines[i]), from + 1)) {
    let count = 1
    while (i + count < lines.length && from + count < known.length && lines[i + count] === known[from + count]) count++
    if (count > longest[1]) longest = [from, count]
  }
  return longest
}

/** The source of a function that restores the texts from the result of `foldLines`. */
export const UNFOLD = `function unfold(folded) {
  const known = []
  const part = (text) => {
    if (typeof text !== 'string') return known.slice(text[0], text[0] + text[1])
    const lines = text.split('\\n')
    known.push(...lines)
    return lines
  }
  return Object.fromEntries(Object.entries(folded).map(([name, parts]) => [name, parts.flatMap(part).join('\\n')]))
}`
