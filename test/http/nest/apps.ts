import type { INestApplication, Type } from '@nestjs/common'
import { afterEach } from 'vitest'
import { type Platform, startNest } from '../support/nest.js'

const apps: INestApplication[] = []
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

/** Starts an app that ends with its test. */
export async function serve(platform: Platform, module: Type, setUp?: (app: INestApplication) => void) {
  const { app, url } = await startNest(platform, module, setUp)
  apps.push(app)
  const request = (path: string, init: RequestInit = {}) => fetch(url + path, init)
  const status = async (path: string, init?: RequestInit) => (await request(path, init)).status
  const statuses = async (path: string, times: number, init?: RequestInit) => {
    const seen: number[] = []
    for (let n = 0; n < times; n++) seen.push(await status(path, init))
    return seen
  }
  return { app, url, request, status, statuses }
}
