import type { OverrideTable } from '../compile/override-table.js'
import { checkApart } from '../document/check-apart.js'
import { plainCopy } from '../document/plain.js'
import { locatedBy } from '../document/read.js'
import type { LocatedProblem, Problem } from '../problems/problem.js'
import { checkSchema } from '../schema/check.js'
import type { SavedDocuments } from './saved-documents.js'
import type { SavedOverrides } from './saved-overrides.js'

/** A document of a source: text, or an object. */
export interface Loaded {
  /** Its name in problems: a file's path. */
  readonly name: string
  /** Its version for people. */
  readonly version: string
  /** Different for different contents. @default the version */
  readonly mark?: string
  readonly text?: string
  readonly object?: unknown
}

/** The source of a document. */
export interface PoliciesSource {
  readonly name: string
  /** Overrides that it has beside the document, as requests look them up. Undefined for none. */
  readonly overrides?: OverrideTable | undefined
  /** The same overrides one by one. Undefined if it has none. */
  readonly saved?: SavedOverrides | undefined
  /** The same on the connection that may write them. Undefined if there is none. */
  readonly writer?: SavedOverrides | undefined
  /** The versions of its document, and the same on the connection that may write them. Undefined if it keeps none. */
  readonly documents?: {
    readonly name: string
    readonly reader: SavedDocuments
    readonly writer: SavedDocuments | undefined
  }
  /** Reads changes of its overrides now. */
  refresh?(): Promise<void>
  /**
   * Undefined if it is being written at this moment: the call is repeated.
   *
   * @throws where it cannot be read
   */
  load(): Promise<Loaded | undefined>
  /**
   * Calls back whenever there may be another version, and where that cannot be checked, until it is closed. Absent where there
   * never is one.
   */
  watch?(onChange: () => void, onFailure: (error: Error) => void): void
  /** Whether there is a newer version. Called after each version. */
  look?(): void
  close?(): void | Promise<void>
}

/** A document that code gives: its text, or an object. */
export function contentsOf(document: unknown): Pick<Loaded, 'text' | 'object'> {
  return typeof document === 'string' ? { text: document } : { object: document }
}

/** A document of a source, read and checked by its form. */
export interface CheckedDocument {
  readonly value: unknown
  readonly problems: readonly LocatedProblem[]
  /** Locates problems in it. */
  readonly located: (problems: readonly Problem[]) => LocatedProblem[] | Promise<readonly LocatedProblem[]>
}

/** Long texts are read in a thread of their own. */
export async function checkDocument({ name, text, object }: Loaded): Promise<CheckedDocument> {
  if (text === undefined) return checkObject(name, object)
  const { value, problems } = await checkApart({ name, text })
  return { value, problems, located: async (toLocate) => (await checkApart({ name, text, toLocate })).problems }
}

function checkObject(name: string, object: unknown): CheckedDocument {
  const { value, problem } = plainCopy(object)
  const located = locatedBy(name, () => undefined)
  return { value, problems: located(problem ? [problem] : checkSchema(value)), located }
}
