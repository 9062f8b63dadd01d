import { shortened } from '@sluice/core/internal'

/** Longer agents end with an ellipsis. */
const MAX_AGENT = 200

/** May be an e-mail address, or contain one. */
const WORD = /[^\s<>()"',;:/=]+/g
/** Also encoded, once or several times. */
const AT = /@|%(?:25)*40/i
/** Not the version in `Chrome/120.0.0.0`. */
const IPV4 = /(?<![\w.]|(?<!:\/)\/)\d{1,3}(?:\.\d{1,3}){3}(?![\w.])/g

/** The agent, shortened, with a placeholder for each IPv4 address and e-mail address. What else a client writes there stays. */
export function agentText(agent: string): string {
  // The texts that are replaced are not cut in two.
  const start = agent.slice(0, 2 * MAX_AGENT)
  return shortened(start.replace(WORD, foldedWord).replace(IPV4, ':address'), MAX_AGENT)
}

function foldedWord(word: string): string {
  const rest = word.slice(1)
  const at = rest.search(AT)
  return at >= 0 && /.\../s.test(rest.slice(at + 1)) ? ':email' : word
}
