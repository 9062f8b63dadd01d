import { memoryStore } from '@sluice/core'
import type { StoreUnderTest } from './store-under-test.js'
import { vectorsContract } from './vectors.js'

const memory: StoreUnderTest = {
  name: 'memory',
  make: (clock) => memoryStore({ clock }),
  close: async () => {},
}

vectorsContract(memory)
