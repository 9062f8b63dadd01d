import { memoryStore } from '@sluice/core'
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

storeContract({ name: memory.name, make: memory.make, describe, test })
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
