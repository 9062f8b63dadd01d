import { escapeControls } from '@sluice/core/internal'

/** The way to a value in a document: `['policies', 'api', 'limits', 0]`. */
export type Path = readonly (string | number)[]

/** One mistake in a document. */
export interface Problem {
  readonly path: Path
  /** The expectation, and usually the value that came instead. */
  readonly message: string
  /** Whether the path names a field that is wrong by itself, rather than by its value. */
  readonly isField?: boolean
  /** Its position in the text, in characters from the start, where that is known already. */
  readonly offset?: number
}

/** A problem with its location: lines and columns from 1. Undefined in documents without text. */
export interface LocatedProblem {
  readonly source: string
  readonly line: number | undefined
  readonly column: number | undefined
  /** As text: `policies.api.limits[0].window`. Empty for the whole document. */
  readonly path: string
  readonly message: string
}

/** Most problems that are reported of one document. */
export const MAX_PROBLEMS = 100

/** A problem as one line: `policies.yaml:12:9: policies.api.limits[0].window: expected …`. */
export function lineOf({ source, line, column, path, message }: LocatedProblem): string {
  const at = line === undefined ? source : `${source}:${line}:${column}`
  return `${at}: ${path === '' ? '' : `${path}: `}${message}`
}

export function textOfPath(path: Path): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z0-9_-]{1,64}$/.test(part)) text += text === '' ? part : `.${part}`
    else text += `[${shown(part)}]`
  }
  return text
}

/** A value of a document in a message: short, and without characters that control a terminal. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return escapeControls(JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value))
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return value === null ? 'nothing' : String(value).slice(0, 60)
}
