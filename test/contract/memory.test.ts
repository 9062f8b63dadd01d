// Takes long: begins first.
import { memoryStore, type Store } from '@sluice/core'
import { KEPT_CHARGES, type StoreKeptCharges } from '@sluice/core/store'
import { storeContract } from '@sluice/testing'
import { describe, test } from 'vitest'
import { agreementContract } from './agreement.js'
import { bansContract } from './bans.js'
import { blocksContract } from './blocks.js'
import { calendarContract } from './calendars.js'
import { chargingContract } from './charging.js'
import { eventsContract } from './events.js'
import { forgettingContract } from './forgetting.js'
import { guaranteesContract } from './guarantees.js'
import { listsContract } from './lists.js'
import { offendersContract } from './offenders.js'
import { overspendingContract } from './overspending.js'
import { propertiesContract } from './properties.js'
import { refundsContract } from './refunds.js'
import { refundsAfterChangesContract } from './refunds-after-changes.js'
import type { StoreUnderTest } from './store-under-test.js'

const memory: StoreUnderTest = {
  name: 'memory',
  // Long runs leave many keys behind, and eviction has tests of its own.
  make: (clock, options) =>
    memoryStore({ clock, maxKeys: 10_000_000, ...(options && { deny: options.deny, offenders: options.offenders }) }),
  close: async () => {},
}

/** As a store does that decides in another process. */
function byJson(store: Store): Store {
  const decide: Store['decide'] = store.decide.bind(store)
  const charges = store[KEPT_CHARGES] as StoreKeptCharges
  return Object.assign(store, {
    decide: (request: Parameters<Store['decide']>[0]) => copied(decide(copied(request))),
    [KEPT_CHARGES]: { find: (policy: string, id: string) => copied(charges.find(policy, id)) },
  })
}

/** What every store has. */
function portOf(store: Store): Store {
  return {
    decide: (request) => store.decide(request),
    reset: (plan, identities) => store.reset(plan, identities),
    close: () => store.close(),
  }
}

function copied<T>(data: T): T {
  return JSON.parse(JSON.stringify(data))
}

storeContract({ name: memory.name, make: memory.make, describe, test })
storeContract({ name: 'memory, by the port alone', make: (clock) => portOf(memoryStore({ clock })), describe, test })
storeContract({ name: 'memory by JSON', make: (clock) => byJson(memoryStore({ clock })), describe, test })
agreementContract(memory)
propertiesContract(memory)
guaranteesContract(memory)
refundsContract(memory)
refundsAfterChangesContract(memory)
overspendingContract(memory)
chargingContract(memory)
calendarContract(memory)
bansContract(memory)
blocksContract(memory)
forgettingContract(memory)
eventsContract(memory)
offendersContract(memory)
listsContract(memory)
