import { memoryStore } from '@sluice/core'
import { agreementContract } from './agreement.js'
import { propertiesContract } from './properties.js'
import type { StoreUnderTest } from './store-under-test.js'
import { vectorsContract } from './vectors.js'

const memory: StoreUnderTest = {
  name: 'memory',
  make: (clock) => memoryStore({ clock }),
  close: async () => {},
}

vectorsContract(memory)
agreementContract(memory)
propertiesContract(memory)
