// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { Controller } from '@nestjs/common'
import { byHeader, memoryStore, RateLimit, SluiceModule, slidingLog } from '@sluice/nestjs'
import got from 'got'
import ky from 'ky'
import { Agent, RetryAgent, request } from 'undici'
import { expect, test } from 'vitest'
import { classOf, get, guarded, PLATFORMS } from '../support/nest.js'
import { serve } from './apps.js'

type Visit = (url: string, key: string) => Promise<unknown>

const CLIENTS: Readonly<Record<string, Visit>> = {
  async undici(url, key) {
    const dispatcher = new RetryAgent(new Agent(), { maxRetries: 1 })
    const { statusCode, body } = await request(url, { dispatcher, headers: { 'x-key': key } })
    await body.dump()
    await dispatcher.close()
    return statusCode
  },
  got: async (url, key) => (await got(url, { headers: { 'x-key': key }, retry: { limit: 1 } })).statusCode,
  ky: async (url, key) => (await ky(url, { headers: { 'x-key': key }, retry: { limit: 1 } })).status,
}

test('undici, got and ky wait as long as a refusal of Nest says, and succeed with their next request', async () => {
  const visit = async (platform: (typeof PLATFORMS)[number]) => {
    const limits = [
      slidingLog({ name: 'short', limit: 1, window: '2s' }),
      slidingLog({ name: 'long', limit: 5, window: '1h' }),
    ]
    const own = { limits, store: memoryStore(), key: byHeader('x-key') }
    const Items = classOf('Items', { list: get('', RateLimit(own)) }, Controller('items'))
    const { url } = await serve(platform, guarded({ limits: SluiceModule.forRoot(), controllers: [Items] }))
    const visitAs = async ([name, visit]: [string, Visit]) => {
      await fetch(`${url}/items`, { headers: { 'x-key': name } })
      return [name, await visit(`${url}/items`, name)]
    }
    return Promise.all(Object.entries(CLIENTS).map(visitAs))
  }
  const admitted = Object.keys(CLIENTS).map((name) => [name, 200])
  expect(await Promise.all(PLATFORMS.map(visit))).toEqual(PLATFORMS.map(() => admitted))
})
