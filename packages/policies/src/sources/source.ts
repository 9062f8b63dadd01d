import { plainCopy } from '../document/plain.js'
import type { LocatedProblem, Problem } from '../document/problem.js'
import { locatedBy, readText } from '../document/read.js'

/** A document as a source holds it: text, or an object. */
export interface Loaded {
  /** How problems call it: a file's path. */
  readonly name: string
  /** Another one for other contents. */
  readonly version: string
  readonly text?: string
  readonly object?: unknown
}

/** Where a document comes from. */
export interface PoliciesSource {
  readonly name: string
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

/** What a source holds, as plain data, and where in it problems are. */
export function dataIn({ name, text, object }: Loaded): {
  value: unknown
  problems: readonly Problem[]
  located: (problems: readonly Problem[]) => LocatedProblem[]
} {
  const { value, problems, locate } = text === undefined ? fromObject(object) : readText(text)
  const located = locatedBy(name, locate)
  return { value, problems, located }
}

function fromObject(object: unknown) {
  const { value, problem } = plainCopy(object)
  const locate = (_problem: Problem): { line: number; column: number } | undefined => undefined
  return { value, problems: problem ? [problem] : [], locate }
}
