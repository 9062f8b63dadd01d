import type { StoreChanges } from '@sluice/core'
import { type Policies, policies, readDocument, type SavedDocuments } from '@sluice/policies'
import { namesIn } from '../../documents/names.js'
import { givenUrl, poolFor, schemaOf } from '../../postgres/client.js'
import type { OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { UsageError } from '../../program/usage-error.js'
import { givenTarget } from '../../redis/given-target.js'
import { clientFor, isCluster, withStore } from '../../redis/store.js'
import { withDocuments } from '../policies/documents.js'

/**
 * Does something with the policies in Redis or PostgreSQL and the overrides beside them.
 *
 * @param kind of the client that is meant: code registers it, if the document does not name it
 * @throws UsageError, Unreachable, PostgresFailure, PoliciesError
 */
export async function withPolicies<Result>(
  values: OptionValues,
  environment: Environment,
  kind: string | undefined,
  then: (loaded: Policies) => Promise<Result>,
): Promise<Result> {
  const newest = await withDocuments(values, environment, (documents: SavedDocuments) => documents.newest())
  if (!newest) throw new UsageError('there is no document of policies so far: sluice apply saves one')
  const names = namesIn(readDocument(newest.text))
  const options = {
    name: String(values.name ?? 'default'),
    keys: objectOf([...names.keys, ...(kind === undefined ? [] : [kind])], () => undefined),
    tiers: objectOf(names.tiers, () => ''),
    costs: objectOf(names.costs, () => 1),
  }
  if (values.to === 'postgres') return inPostgres(values, environment, options, then)
  const target = givenTarget(values, environment)
  const client = clientFor(target, await isCluster(target), false)
  // A command that fails explains it.
  client.on('error', () => {})
  try {
    const prefix = String(values.prefix ?? 'sluice:')
    return await closing(await policies.from({ redis: client, save: client, prefix, ...options }), then)
  } finally {
    client.disconnect()
  }
}

async function inPostgres<Result>(
  values: OptionValues,
  environment: Environment,
  options: object,
  then: (loaded: Policies) => Promise<Result>,
): Promise<Result> {
  const pool = (await poolFor(givenUrl(values, environment))) as { end(): Promise<void> }
  try {
    const postgres = { pool, schema: schemaOf(values), listen: false }
    return await closing(await policies.from({ postgres, save: pool, ...options }), then)
  } finally {
    await pool.end().catch(() => {})
  }
}

async function closing<Result>(loaded: Policies, then: (loaded: Policies) => Promise<Result>): Promise<Result> {
  try {
    return await then(loaded)
  } finally {
    await loaded.close()
  }
}

/**
 * Does something with the entries of changes, which are in Redis, wherever the policies are.
 *
 * @throws UsageError where no Redis is named
 */
export function withChanges<Result>(
  values: OptionValues,
  environment: Environment,
  then: (changes: StoreChanges) => Promise<Result>,
): Promise<Result> {
  return withStore(values, environment, (store) => then(store.changes))
}

function objectOf<Value>(names: Iterable<string>, value: () => Value): Record<string, () => Value> {
  return Object.fromEntries([...names].map((name) => [name, value]))
}
