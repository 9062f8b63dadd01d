import type { AddressInfo } from 'node:net'
import type { AdapterApp, AdapterAppFactory, AdapterAppSpec, AdapterLimiterOptions } from '@sluice/testing'

// Short names for what the published contract of adapters has.
export type AnyOptions = AdapterLimiterOptions
export type AppSpec = AdapterAppSpec
export type AppFactory = AdapterAppFactory

export interface RunningApp extends AdapterApp {
  readonly url: string
  close(): Promise<void>
}

export async function run(factory: AppFactory, spec: AppSpec): Promise<RunningApp> {
  const app = await factory(spec)
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
  const { port } = app.server.address() as AddressInfo
  return {
    ...app,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        app.server.close(() => resolve())
        app.server.closeAllConnections()
      }),
  }
}
