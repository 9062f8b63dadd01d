/**
 * The candidate that a misspelt word was most likely meant to be; undefined where none is near: at most one edit in
 * three letters.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const isStart = word.length >= 2 && candidate.startsWith(word)
    const distance = isStart ? 1 : editDistance(word, candidate)
    if (distance < least) {
      best = candidate
      least = distance
    }
  }
  return best
}

/** Letters inserted, removed, replaced or swapped with their neighbour to make one word of the other. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, i) => i)]
  const at = (row: number, column: number) => rows[row]?.[column] as number
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1]
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (isSame ? 0 : 1),
          isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
  }
  return at(from.length, to.length)
}
