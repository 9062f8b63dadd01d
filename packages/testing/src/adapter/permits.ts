import assert from 'node:assert/strict'
import { concurrency, everyone } from '@sluice/core'
import { until } from '../until.js'
import type { RegisterTest } from './adapter-test.js'
import { limiterOf } from './app.js'
import { send, statuses } from './client.js'

/** A handler that responds when the test releases it. */
function held() {
  let finish = () => {}
  const handler = () =>
    new Promise<string>((resolve) => {
      finish = () => resolve('done')
    })
  return { handler, finish: () => finish() }
}

export function permitTests(on: RegisterTest): void {
  on('a permit is released when the response is finished', async ({ start, store }) => {
    const { handler, finish } = held()
    const app = await start({
      routes: {
        '/': { limiters: [{ name: 'busy', store, limits: [concurrency({ limit: 1 })], key: everyone() }], handler },
      },
    })
    const first = send(app.url)
    await until(() => app.ran.length, 1)
    const refused = await send(app.url)
    assert.equal(refused.status, 429)
    assert.equal(refused.headers['ratelimit-policy'], '"busy";q=1;qu="concurrent-requests"')
    finish()
    assert.equal((await first).status, 200)
    const second = send(app.url)
    await until(() => app.ran.length, 2)
    finish()
    assert.equal((await second).status, 200)
  })

  on('a permit is renewed for as long as the response takes', async ({ start, store, clock }) => {
    const { handler, finish } = held()
    const limits = [concurrency({ limit: 1, ttl: '90ms' })]
    const app = await start({
      routes: { '/': { limiters: [{ name: 'busy', store, limits, key: everyone() }], handler } },
    })
    const heldForMs = async () => (await limiterOf(app).peek('everyone')).resetAfterMs
    const first = send(app.url)
    await until(() => app.ran.length, 1)
    for (let n = 0; n < 3; n++) {
      clock.advance(60)
      await until(heldForMs, 90)
    }
    assert.equal((await send(app.url)).status, 429)
    finish()
    assert.equal((await first).status, 200)
    await until(heldForMs, 0)
  })

  on('a permit is released when the handler fails', async ({ start, store }) => {
    const limits = [concurrency({ limit: 1 })]
    const app = await start({
      routes: {
        '/': {
          limiters: [{ name: 'busy', store, limits, key: everyone() }],
          handler: () => Promise.reject(Object.assign(new Error('handler'), { code: 'HANDLER' })),
        },
      },
    })
    for (let n = 0; n < 3; n++) {
      assert.deepEqual(await statuses(app.url, 1), [500])
      await until(async () => (await limiterOf(app).peek('everyone')).remaining, 1)
    }
    assert.equal(app.errors.length, 3)
  })
}
