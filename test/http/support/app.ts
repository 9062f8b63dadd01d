// Short names for what the published contract of adapters has, and how it starts an app.
export {
  type AdapterAppFactory as AppFactory,
  type AdapterAppSpec as AppSpec,
  type AdapterLimiterOptions as AnyOptions,
  type RunningApp,
  startApp as run,
} from '../../../packages/testing/src/adapter/app.js'
