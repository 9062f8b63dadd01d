// Short names for the types of the published adapter contract, and for the function that starts an app.
export {
  type AdapterAppFactory as AppFactory,
  type AdapterAppSpec as AppSpec,
  type AdapterLimiterOptions as AnyOptions,
  type RunningApp,
  startApp as run,
} from '../../../packages/testing/src/adapter/app.js'
