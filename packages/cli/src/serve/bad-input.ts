/** What is wrong with a request to the decider itself. The message is a sentence for its caller. */
export class BadInput extends Error {
  readonly status: number
  /** Whether the rest of what the caller sends is unknown, so that the connection ends. */
  readonly ends: boolean

  constructor(status: number, message: string, { ends = false } = {}) {
    super(message)
    this.status = status
    this.ends = ends
  }
}
