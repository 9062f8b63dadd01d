import type { OverrideTable } from '../compile/override-table.js'
import { checkApart } from '../document/check-apart.js'
import { plainCopy } from '../document/plain.js'
import { locatedBy } from '../document/read.js'
import type { LocatedProblem, Problem } from '../problems/problem.js'
import { checkSchema } from '../schema/check.js'

/** A document as a source holds it: text, or an object. */
export interface Loaded {
  /** How problems call it: a file's path. */
  readonly name: string
  /** As people know it. */
  readonly version: string
  /** Another one for other contents. @default the version */
  readonly mark?: string
  readonly text?: string
  readonly object?: unknown
}

/** Where a document comes from. */
export interface PoliciesSource {
  readonly name: string
  /** Overrides that it has beside the document. Undefined for none. */
  readonly overrides?: OverrideTable | undefined
  /**
   * Undefined where it is being written at this moment: it is asked again.
   *
   * @throws where it cannot be read
   */
  load(): Promise<Loaded | undefined>
  /**
   * Calls back whenever there may be another version, and where it cannot be looked at, until it is closed. Absent where there
   * never is one.
   */
  watch?(onChange: () => void, onFailure: (error: Error) => void): void
  /** Whether there is another version by now: asked once one has been dealt with. */
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
  /** Says where in it problems are. */
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
