import { concurrency, delay, memoryStore, perMinute, shadow } from '@sluice/core'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { type AnyOptions, run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'

/** A limiter with every option that listens for the end of a response. */
const limiter = (n: number): AnyOptions => ({
  name: `limiter-${n}`,
  store: memoryStore(),
  limits: [perMinute(100, { respond: shadow() }), concurrency({ limit: 10 })],
  count: { only: 'success' },
  body: { max: 1000 },
  respond: delay({ from: 0, by: '1ms' }),
})

describe.each(Object.entries(FRAMEWORKS))('%s', (_name, factory) => {
  test('a stack of limiters on one response causes no warning of a listener leak', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    const app = await run(factory, { routes: { '/': { limiters: [1, 2, 3, 4].map(limiter) } } })
    try {
      expect((await request(app.server).get('/')).status).toBe(200)
      // Warnings are emitted on the next tick.
      await new Promise((resolve) => setImmediate(resolve))
      expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
    } finally {
      process.removeListener('warning', note)
      await app.close()
    }
  })
})
