/**
 * Lowers all counts by that of the largest entry beyond `kept`, and drops those that reach 0. Returns by how much.
 *
 * This is the summary of Misra and Gries, "Finding repeated elements" (1982), trimmed as Agarwal et al. merge such summaries,
 * "Mergeable Summaries" (PODS 2012). Each trim takes the same from more than `kept` counts. The sum of what it returns is therefore at
 * most the sum of all counts divided by `kept + 1`. No count is too high, and none is lower by more than that sum, also after
 * summaries were added up.
 */
export function trimCounts(counts: Map<string, number>, kept: number): number {
  if (counts.size <= kept) return 0
  const lost = [...counts.values()].sort((one, other) => other - one)[kept] as number
  for (const [name, count] of [...counts]) {
    if (count > lost) counts.set(name, count - lost)
    else counts.delete(name)
  }
  return lost
}
