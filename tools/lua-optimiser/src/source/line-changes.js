/** At a line, from 0, how many lines go, and what comes in their place. @typedef {[line: number, removed: number, added: string]} Change */

/**
 * How one text becomes another, line by line, from the last change to the first: each can be made without moving the lines of
 * the next.
 *
 * @param {string} from
 * @param {string} to
 * @returns {Change[]}
 */
export function lineChanges(from, to) {
  const before = from.split('\n')
  const after = to.split('\n')
  const common = commonLines(before, after)
  common.push([before.length, after.length])
  /** @type {Change[]} */
  const changes = []
  let i = 0
  let j = 0
  for (const [nextI, nextJ] of common) {
    const added = after.slice(j, nextJ)
    if (nextI > i || added.length > 0) changes.unshift([i, nextI - i, added.join('\n')])
    i = nextI + 1
    j = nextJ + 1
  }
  return changes
}

/**
 * The longest common subsequence, as pairs of positions.
 *
 * @param {readonly string[]} before
 * @param {readonly string[]} after
 * @returns {[number, number][]}
 */
function commonLines(before, after) {
  const width = after.length + 1
  const lengths = new Uint16Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const at = i * width + j
      lengths[at] =
        before[i] === after[j]
          ? 1 + /** @type {number} */ (lengths[at + width + 1])
          : Math.max(/** @type {number} */ (lengths[at + width]), /** @type {number} */ (lengths[at + 1]))
    }
  }
  /** @type {[number, number][]} */
  const pairs = []
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) pairs.push([i++, j++])
    else if (/** @type {number} */ (lengths[(i + 1) * width + j]) >= /** @type {number} */ (lengths[i * width + j + 1]))
      i++
    else j++
  }
  return pairs
}

/**
 * A text with changes made.
 *
 * @param {string} text
 * @param {readonly Change[]} changes
 */
export function changedLines(text, changes) {
  const lines = text.split('\n')
  for (const [line, removed, added] of changes) lines.splice(line, removed, ...(added === '' ? [] : added.split('\n')))
  return lines.join('\n')
}
