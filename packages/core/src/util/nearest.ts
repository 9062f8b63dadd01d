/** The known name with the fewest edits, where that is at most a third of its letters; undefined if none is near. */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const edits = editsBetween(name.slice(0, 40).toLowerCase(), candidate.toLowerCase())
    if (edits < fewest && edits <= Math.max(1, Math.floor(candidate.length / 3))) {
      nearest = candidate
      fewest = edits
    }
  }
  return nearest
}

/** Levenshtein's distance, where two neighbouring letters in the wrong order are one edit (optimal string alignment). */
function editsBetween(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let edits = Math.min(replaced, (last[j] as number) + 1, (row[j - 1] as number) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, (beforeLast[j - 2] as number) + 1)
      }
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}
