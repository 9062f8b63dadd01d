import { PoliciesError } from '../problems/policies-error.js'
import { locatedBy, readText } from './read.js'

/** A document by its parts, which are plain data. */
export interface ReadDocument {
  readonly carry?: unknown
  readonly policies?: Readonly<Record<string, unknown>>
  readonly overrides?: readonly { readonly policy: string }[]
}

/**
 * The document that a text holds; its parts are not checked.
 *
 * @throws PoliciesError where it is no YAML or JSON
 */
export function readDocument(text: string): ReadDocument {
  const { value, problems, locate } = readText(text)
  if (problems.length > 0) throw new PoliciesError(locatedBy('document', locate)(problems))
  return (value ?? {}) as ReadDocument
}
