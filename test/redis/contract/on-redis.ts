import { type RedisClient, redisStore } from '@sluice/core'
import { storeContract } from '@sluice/testing'
import { afterAll, describe, test } from 'vitest'
import { agreementContract } from '../../contract/agreement.js'
import { bansContract } from '../../contract/bans.js'
import { blocksContract } from '../../contract/blocks.js'
import { calendarContract } from '../../contract/calendars.js'
import { chargingContract } from '../../contract/charging.js'
import { eventsContract } from '../../contract/events.js'
import { forgettingContract } from '../../contract/forgetting.js'
import { guaranteesContract } from '../../contract/guarantees.js'
import { listsContract } from '../../contract/lists.js'
import { offendersContract } from '../../contract/offenders.js'
import { overspendingContract } from '../../contract/overspending.js'
import { propertiesContract } from '../../contract/properties.js'
import { refundsContract } from '../../contract/refunds.js'
import { refundsAfterChangesContract } from '../../contract/refunds-after-changes.js'
import type { StoreUnderTest } from '../../contract/store-under-test.js'
import type { Owned } from '../../support/clients.js'
import { insist } from '../../support/outages.js'

/** A server or a cluster, as the tests start them. */
interface Servers {
  stop(): Promise<void>
}

/** Every contract, on stores made of one client. `effort` is low as every step is a round trip; `SLUICE_RUNS` raises it. */
export async function contractsOnRedis(
  name: string,
  servers: Servers,
  client: Owned<RedisClient>,
  effort: number,
): Promise<void> {
  await client.ready
  const stores: { close(): Promise<void> }[] = []
  const redis: StoreUnderTest = {
    name,
    make(clock, options) {
      const store = insist(redisStore(client.client, { clock, timeout: 5000, ...options }))
      stores.push(store)
      return store
    },
    async close() {
      for (const store of stores) await store.close()
      client.close()
      await servers.stop()
    },
    effort,
  }
  storeContract({
    name,
    make: (clock) => insist(redisStore(client.client, { clock, timeout: 5000 })),
    describe,
    test,
  })
  agreementContract(redis)
  propertiesContract(redis)
  chargingContract(redis)
  calendarContract(redis)
  guaranteesContract(redis)
  refundsContract(redis)
  refundsAfterChangesContract(redis)
  overspendingContract(redis)
  bansContract(redis)
  blocksContract(redis)
  forgettingContract(redis)
  eventsContract(redis)
  offendersContract(redis)
  listsContract(redis)
  afterAll(() => redis.close())
}
