import type { PoliciesOptions } from '@sluice/policies'
import { poolFor } from '../../postgres/client.js'
import type { DocumentPlace } from './settings.js'

/** The place of a document, as an option of `policies.from`. @param client of the Redis that has it */
export async function sourceAt(document: DocumentPlace, client: unknown, prefix: string): Promise<PoliciesOptions> {
  if ('file' in document) return { file: document.file }
  if ('inRedis' in document) return { redis: client, name: document.inRedis, prefix }
  const { url, schema, inPostgres } = document
  return { postgres: { pool: await poolFor(url), schema }, name: inPostgres }
}
