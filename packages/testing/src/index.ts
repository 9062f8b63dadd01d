export type {
  AdapterApp,
  AdapterAppFactory,
  AdapterAppSpec,
  AdapterLimiterOptions,
  AdapterRouteSpec,
} from './adapter/app.js'
export { type AdapterContractOptions, adapterContract } from './adapter/contract.js'
export { type TestClock, testClock } from './clock.js'
export { type FailingStore, failingStore } from './failing-store.js'
export { resetAll } from './reset-all.js'
export type { TestRunner } from './runner.js'
export { type StoreContractOptions, storeContract } from './store-contract.js'
