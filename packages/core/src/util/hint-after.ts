import { nearestOf } from './nearest.js'
import { hintFor } from './option-hints.js'

/** The end of a message about an unknown word: what to use instead, such as `; did you mean --json?`; empty for no hint. */
export function hintAfter(word: string, known: readonly string[], prefix = ''): string {
  const hint = hintFor(word, known, { near, prefix })
  return hint === undefined ? '' : `; ${hint}`
}

/** One that begins like the word, else the nearest. */
function near(word: string, known: readonly string[]): string | undefined {
  const begun = word.length >= 2 ? known.find((candidate) => candidate.startsWith(word)) : undefined
  return begun ?? nearestOf(word, known)
}
