import {
  type Policies,
  PoliciesError,
  policies,
  type ReadDocument,
  type Resolvers,
  readDocument,
} from '@sluice/policies'
import { textOfFile } from '../documents/file.js'
import { UsageError } from '../program/usage-error.js'

/** A document that is played. */
export interface PlayedDocument {
  readonly data: ReadDocument
  readonly policies: Policies
}

/** @throws UsageError for a file that cannot be read, or with every mistake in it */
export async function loadDocument(file: string, resolvers: Resolvers): Promise<PlayedDocument> {
  const text = textOfFile(file)
  return { data: readDocument(text), policies: await policiesOf({ load: () => text }, resolvers, file) }
}

/** The policies of a document that is data. */
export async function policiesOf(
  source: { readonly load: () => string } | { readonly object: unknown },
  resolvers: Resolvers,
  file: string,
): Promise<Policies> {
  try {
    return await policies.from({ ...source, ...resolvers })
  } catch (error) {
    if (!(error instanceof PoliciesError)) throw error
    const remedy = /register|resolver/.test(error.message)
      ? '\n--field NAME=FIELD gives keys, --resolvers FILE any function'
      : ''
    throw new UsageError(error.message.replaceAll(/^load(?=:)/gm, file) + remedy)
  }
}
