/** The policies of a document as YAML, without the clients that it names. */
export interface ShownDocument {
  readonly text: string
  /** The lines of the limits of each policy, from 1, by its name, with its tier after a point. */
  readonly lines: Readonly<Record<string, readonly number[]>>
  /** Policies for which there is no room. */
  readonly left: number
}
