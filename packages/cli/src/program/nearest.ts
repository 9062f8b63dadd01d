import { nearestOf } from '@sluice/core/internal'

/** The word that was most likely meant: one that begins like it, else the nearest; undefined where none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const begun = word.length >= 2 ? known.find((candidate) => candidate.startsWith(word)) : undefined
  return begun ?? nearestOf(word, known)
}
