import type { LocatedProblem } from './problem.js'

/** Fields of a policy whose values may be personal or secret: lists of clients, and the values that headers must have. */
export const HIDDEN_FIELDS = /^(allow|deny|match\.headers)\b/

const OF_POLICY = /^policies(?:\.[\w-]+|\["(?:[^"\\]|\\.)*"\])\.(.*)$/s
/** Of an override, differences show the policy and the limits. */
const OF_OVERRIDES = /^overrides(?!\[\d+\]\.(?:policy|limits)\b)(?:\[\d+\](?:\.(?:key|prefix|range|until|reason)\b)?)?/

/** The same problem without clients of the document, in its path and message: differences between documents hide the same. */
export function withoutClients(problem: LocatedProblem): LocatedProblem {
  const { path, message, line } = problem
  const isOfSyntax = path === '' && line !== undefined
  if (isOfSyntax) return { ...problem, message: withoutText(message) }
  const shown = shownPath(path)
  return shown === undefined ? problem : { ...problem, path: shown, message: withoutValue(message) }
}

/** The part of a path above names and values of clients. Undefined if there are none. */
function shownPath(path: string): string | undefined {
  const [, field] = OF_POLICY.exec(path) ?? []
  const [hidden] = HIDDEN_FIELDS.exec(field ?? '') ?? []
  if (field !== undefined && hidden !== undefined) return path.slice(0, path.length - field.length) + hidden
  return OF_OVERRIDES.exec(path)?.[0]
}

const NOT_SHOWN = 'got a value that is not shown'

function withoutValue(message: string): string {
  const [, expected, got] = /^(expected .*?)([,;] got .*)?$/s.exec(message) ?? []
  if (expected !== undefined) return got === undefined ? expected : `${expected}, ${NOT_SHOWN}`
  const [known] = /^(unknown field|wrong name: expected .*|[a-z]+ is missing.*)/is.exec(message) ?? []
  return known ?? `expected another value, ${NOT_SHOWN}`
}

/** Messages of the parser repeat parts of the text after a colon, as tags, and in quotes. */
function withoutText(message: string): string {
  return message
    .replace(/, got ".*/s, `, ${NOT_SHOWN}`)
    .replace(/(?<=\S): .*/s, '')
    .replace(/(?<=^Invalid escape sequence).*/s, '')
    .replace(/!\S+/g, '!…')
}
