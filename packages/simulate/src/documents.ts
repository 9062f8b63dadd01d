import { textOfFile } from '@sluice/core/internal'
import {
  type Policies,
  PoliciesError,
  policies,
  type ReadDocument,
  type Resolvers,
  readDocument,
} from '@sluice/policies'
import { recordedResolvers } from './replay/recorded.js'
import { SimulationError } from './simulation-error.js'

/** A document that is played. */
export interface PlayedDocument {
  readonly data: ReadDocument
  readonly policies: Policies
  /** The functions that it names. */
  readonly resolvers: Resolvers
}

/**
 * @param isRecorded whether it is for recordings, which have the results of functions
 * @param document the path of a file in YAML or JSON, or its data
 * @throws SimulationError for a file that cannot be read, or with every mistake in it
 */
export async function loadDocument(
  document: string | object,
  given: Resolvers,
  isRecorded: boolean,
): Promise<PlayedDocument> {
  const isFile = typeof document === 'string'
  const text = isFile ? textOfFile(document, SimulationError) : JSON.stringify(document)
  const name = isFile ? document : 'document'
  const data = readDocument(text)
  const resolvers = isRecorded ? withRecorded(given, data) : given
  return { data, policies: await policiesOf({ load: () => text }, resolvers, name), resolvers }
}

function withRecorded(given: Resolvers, data: ReadDocument): Resolvers {
  const { keys, tiers, costs } = recordedResolvers(data)
  return {
    ...given,
    keys: { ...keys, ...given.keys },
    tiers: { ...tiers, ...given.tiers },
    costs: { ...costs, ...given.costs },
  }
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
    throw new SimulationError(error.message.replaceAll(/^load(?=:)/gm, file) + remedy)
  }
}
