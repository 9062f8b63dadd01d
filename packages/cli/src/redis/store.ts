import { type RedisStore, redisStore } from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import type { OptionValues } from '../program/command.js'
import type { Environment } from '../program/environment.js'
import { Deadline } from './deadline.js'
import { givenTarget } from './given-target.js'
import { Server } from './server.js'
import { addressOf, type Target } from './target.js'

const TIMEOUT_MS = 10_000

/**
 * Does something with the store on the Redis that the environment, or a file, names; of a cluster, any node will do.
 *
 * @throws UsageError, Unreachable; SluiceError `STORE_UNAVAILABLE`
 */
export async function withStore<Result>(
  values: OptionValues,
  environment: Environment,
  then: (store: RedisStore) => Promise<Result>,
): Promise<Result> {
  const target = givenTarget(values, environment)
  const client = clientFor(target, await isCluster(target), false)
  // The store's error explains it.
  client.on('error', () => {})
  const store = redisStore(client, {
    prefix: String(values.prefix ?? 'sluice:'),
    timeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    // On, so that they can be queried: this process refuses no request.
    offenders: true,
    warnings: { SLUICE_STORE_UNAVAILABLE: false },
  })
  try {
    const { state, cause } = await store.ready()
    if (state === 'unavailable') throw new Error(`Redis at ${addressOf(target)} cannot be used: ${cause?.message}`)
    return await then(store)
  } finally {
    await store.close()
    client.disconnect()
  }
}

/** @throws UsageError, Unreachable */
export async function isCluster(target: Target): Promise<boolean> {
  // Its errors name the remedy where there is no connection.
  const server = await Server.connect(target, new Deadline(TIMEOUT_MS))
  try {
    return (await server.info()).cluster_enabled === '1'
  } finally {
    server.close()
  }
}

/** `reconnects`: whether it tries again and again, as a server does. A command ends instead. */
export function clientFor(
  { host, port, path, tls, username, password, db }: Target,
  isCluster: boolean,
  reconnects: boolean,
): Redis | Cluster {
  const credentials = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
  }
  const giveUp = () => null
  if (isCluster) {
    const strategy = reconnects ? {} : { clusterRetryStrategy: giveUp }
    return new Cluster([{ host, port }], { redisOptions: credentials, slotsRefreshTimeout: TIMEOUT_MS, ...strategy })
  }
  return new Redis({
    ...(path === undefined ? { host, port } : { path }),
    db,
    ...credentials,
    ...(!reconnects && { retryStrategy: giveUp }),
  })
}
