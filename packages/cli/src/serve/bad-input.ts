import { ownFieldsOf } from '@sluice/core/internal'

export interface BadInputOptions {
  /** Whether the rest of the caller's data is unknown, so that the connection ends. @default false */
  readonly ends?: boolean
  /** Whether the client of a gateway is to blame: it reads the message. @default false: the gateway, or a caller of `json` */
  readonly byClient?: boolean
}

/** A fault of a request to the decider itself. The message is a sentence for its caller. */
export class BadInput extends Error {
  readonly status: number
  readonly ends: boolean
  readonly byClient: boolean

  constructor(status: number, message: string, options: BadInputOptions = {}) {
    super(message)
    const { ends = false, byClient = false } = ownFieldsOf(options)
    this.status = status
    this.ends = ends
    this.byClient = byClient
  }
}
