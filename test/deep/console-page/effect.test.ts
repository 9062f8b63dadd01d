// Deep: needs a browser. Runs alone: it watches every decision of its process.
import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { consoleBrowser, cutIn, PICTURES } from './browser.js'
import { servedStore } from './served.js'

const MINUTE_MS = 60_000
/** Requests of each minute. */
const REQUESTS = 8

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const { open, tab } = consoleBrowser()

const textOf = (limit: number) =>
  `{ version: 1, policies: { all: { limits: [{ algorithm: fixedWindow, limit: ${limit}, window: 1m }] } } }`

/** Has the newest version saved at another time. */
async function savedAt(client: Redis, at: number): Promise<void> {
  const versions = 'sluice:policies:{default}:versions'
  const newest = JSON.parse((await client.lindex(versions, 0)) ?? '')
  await client.lset(versions, 0, JSON.stringify({ ...newest, at }))
}

test.each([
  [4, '37.5% of 80 → 75% of 32 too early: 4 of 10 minutes'],
  [10, '37.5% of 80 → 75% of 80'],
  [15, '37.5% of 80 → 75% of 80'],
])('%d minutes after a change, its effect is %s', async (minutes, effect) => {
  await redis.flush()
  const client = new Redis(redis.port)
  const end = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
  // The minute of the change counts for neither side.
  const changed = end - (minutes + 1) * MINUTE_MS
  let now = changed - 12 * MINUTE_MS
  const store = memoryStore({ clock: () => now })
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:')
  await documents.save(textOf(5), 0, 'carol')
  await savedAt(client, changed - 3_600_000)
  const document = await policies.from({ redis: client })
  const guard = createGuard({ store, policies: document })
  const { url, close } = await servedStore(store, { policies: document, traffic: true })
  open.push(
    () => client.disconnect(),
    () => document.close(),
    close,
  )
  const { page, complaints } = await tab(url, 'ann')
  /** Requests of each minute up to `to`. A process counts them each second, and when a console asks. */
  async function pass(to: number, count: number) {
    for (; now < to; now += MINUTE_MS) {
      for (let n = 0; n < count; n++) await guard(contextOf({ ip: '192.0.2.7' }))
      // Blocks refuse as many after the change, and none before it.
      for (let n = 0; n < count; n++) if (now > changed) await guard(contextOf({ ip: '198.51.100.7' }))
      const body = { from: now - MINUTE_MS, to: now }
      const headers = { 'Content-Type': 'application/json', 'Sluice-Console': '1' }
      // Only so many questions are answered in two seconds.
      const isCounted = async () => (await page.request.post(`${url}/api/traffic`, { data: body, headers })).ok()
      await until('the minute is counted', isCounted, { everyMs: 200 })
    }
  }
  await pass(changed, REQUESTS)
  now = changed + 20_000
  await store.blocks.add({ ip: '198.51.100.0/24' }, { for: '1d' })
  const change = {
    by: 'dave',
    action: 'apply',
    before: { document: 'default', version: 1 },
    after: { document: 'default', version: 2 },
  }
  await store.changes.record(change, () => documents.save(textOf(2), 1, 'dave'))
  await savedAt(client, now)
  const isInForce = () => document.byName.get('all')?.options.limits?.[0]?.limit === 2
  await until('the new version is in force', isInForce)
  // In the minute of the change, all are refused that come later.
  await pass(now + 1, 50)
  now = changed + MINUTE_MS
  await pass(end, REQUESTS)
  await page.clock.setFixedTime(end + 5000)
  await page.goto(`${url}/#/changes`)
  const version = page.getByRole('row', { name: /dave new version/ })
  await expect
    .poll(() => version.locator('.what-changed p').textContent(), { timeout: 20_000 })
    .toBe(`Refused by limits of all: ${effect}`)
  // A verdict that is too early accuses nobody.
  expect(await version.locator('.worse').allTextContents()).toEqual(minutes < 10 ? [] : ['75% of 80'])
  for (const width of [1280, 1024, 390]) {
    await page.setViewportSize({ width, height: 800 })
    expect(await cutIn(page), `at ${width} px`).toEqual([])
    await page.screenshot({ path: `${PICTURES}/effect-${minutes}-${width}.png`, fullPage: true })
  }
  expect(complaints).toEqual([])
})
