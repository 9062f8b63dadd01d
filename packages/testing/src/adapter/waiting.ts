import assert from 'node:assert/strict'
import { everyone, type HttpContext, leakyBucket } from '@sluice/core'
import { until } from '../until.js'
import type { RegisterTest } from './adapter-test.js'
import { limiterOf } from './app.js'
import { sendAndLeave, statuses } from './client.js'

export function waitingTests(on: RegisterTest): void {
  on('a client that leaves the queue gets a refund and never reaches the handler', async ({ start, store }) => {
    // The clock does not advance, so that only the refund makes room.
    const limits = [leakyBucket({ leak: 1, every: '700ms', capacity: 2, queue: true })]
    const app = await start({ routes: { '/': { limiters: [{ name: 'queue', store, limits, key: everyone() }] } } })
    const room = async () => (await limiterOf(app).peek('everyone')).remaining
    assert.deepEqual(await statuses(app.url, 1), [200])
    const leave = await sendAndLeave(app.url)
    await until(room, 0)
    assert.deepEqual(await statuses(app.url, 1), [429])
    leave()
    await until(room, 1)
    assert.deepEqual(await statuses(app.url, 1), [200])
    assert.deepEqual([app.ran.length, app.errors], [2, []])
  })

  on('a client that has left before the decision waits in no queue', async ({ start, store }) => {
    const limit = leakyBucket({ leak: 1, every: '1h', capacity: 2, queue: true })
    let calls = 0
    let decided = 0
    const untilGone = (_request: unknown, { response }: HttpContext) =>
      new Promise<false>((resolve) => {
        calls++
        response.on('close', () => setImmediate(resolve, false))
      })
    const app = await start({
      routes: {
        '/': {
          limiters: [
            {
              name: 'queue',
              store,
              limits: [limit],
              key: () => {
                decided++
                return 'everyone'
              },
              skip: untilGone,
            },
          ],
        },
      },
    })
    // One waits already, so that there is a queue.
    await limiterOf(app).consume('everyone')
    const leave = await sendAndLeave(app.url)
    await until(() => calls, 1)
    leave()
    await until(() => decided, 1)
    await until(async () => (await limiterOf(app).peek('everyone')).remaining, 1)
    assert.deepEqual(app.ran, [])
  })
}
