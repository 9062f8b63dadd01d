import { propertyOf } from '@sluice/core/internal'

/** A request that the console does not serve. The message is a sentence for its caller, who may be a stranger. */
export class Problem extends Error {
  readonly status: number
  /** Further members of the problem document. */
  readonly more: Readonly<Record<string, unknown>>

  constructor(status: number, message: string, more: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.status = status
    this.more = more
  }
}

/** The message of an error, without values of clients where it is one of a document: of `@sluice/policies`, which is not loaded here. */
export function messageOf(error: Error & { readonly messageWithoutClients?: string }): string {
  return propertyOf(error, 'messageWithoutClients') ?? error.message
}
