// Deep: needs a browser.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, memoryStore } from '@sluice/core'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { APPS, type StartApp, storeOnRedis } from '../../console/support.js'
import { startRedis } from '../../support/redis-server.js'
import { consoleBrowser, find, settled, show } from './browser.js'
import { servedPage, servedStore } from './served.js'

// What the page shows of now, of before, and of an outage.

const { open, opened, tab } = consoleBrowser()

const colourOf = (page: Page, selector: string): Promise<string | undefined> => {
  const element = page.locator(selector).first()
  return element.evaluate((shown) => shown.ownerDocument.defaultView?.getComputedStyle(shown).color)
}

test('an outage is told once on each page, what is of before is grey, and both end with it', async () => {
  const own = await startRedis()
  open.push(() => own.stop())
  const { url, close } = await servedPage(APPS.Koa as StartApp, own)
  open.push(close)
  const { page } = await opened(url, 'ann')
  await find(page, 'user', 'ann')
  await settled(page)
  const [red, muted] = await Promise.all([colourOf(page, '.verdict .notice.bad'), colourOf(page, 'footer')])
  expect(red).not.toBe(muted)
  own.kill('SIGKILL')
  const told = page.getByText(/The store is away/)
  await told.waitFor({ timeout: 45_000 })
  await page.getByText(/^As of /).waitFor({ timeout: 45_000 })
  await expect.poll(() => colourOf(page, '.verdict .notice'), { timeout: 20_000 }).toBe(muted)
  expect(await told.count()).toBe(1)
  expect(await colourOf(page, '.table td')).toBe(muted)
  for (const name of ['overview', 'blocks', 'changes', 'policies', 'lists'] as const) {
    await show(page, name)
    await expect.poll(() => told.allTextContents()).toHaveLength(1)
  }
  await show(page, 'overview')
  expect(await colourOf(page, '.tiles .value')).toBe(muted)
  await own.restart()
  await expect.poll(() => told.count(), { timeout: 45_000 }).toBe(0)
  await expect.poll(() => colourOf(page, '.tiles .value'), { timeout: 20_000 }).not.toBe(muted)
})

/** A console whose history is that of the last six minutes, of which one is not over: 60 decisions more in each. */
async function withHistory() {
  const { url, close } = await servedStore(memoryStore(), {})
  open.push(close)
  const { page } = await tab(url, 'ann')
  await page.route('**/api/figures/history', async (route) => {
    const answer = await (await route.fetch()).json()
    const steps: number[] = answer.at
    const fill = (countAt: (i: number) => number) => steps.map((_, i) => countAt(i))
    await route.fulfill({
      json: {
        ...answer,
        processes: fill(() => 1),
        decisions: fill((i) => 60 * (i + 1)),
        refused: fill(() => 0),
        reported: fill(() => 0),
        alone: fill(() => 0),
      },
    })
  })
  await page.goto(url)
  return page
}

/** The caption of a chart while the mouse is over one of its ends. */
async function captionAt(page: Page, share: number): Promise<string> {
  const box = await page.locator('.chart .u-over').first().boundingBox()
  if (!box) throw new Error('no chart')
  await page.mouse.move(box.x + share * (box.width - 1), box.y + box.height / 2)
  return (await page.locator('.chart figcaption').first().textContent()) ?? ''
}

test('the live curve begins with the last five minutes', async () => {
  const page = await withHistory()
  await page.locator('.chart').waitFor()
  // The first full minute: 60 decisions, one a second.
  await expect.poll(() => captionAt(page, 0), { timeout: 15_000 }).toMatch(/decisions a second 1 /)
})

test('a minute that is not over is not drawn, and the newest full one is told', async () => {
  const page = await withHistory()
  await page.getByText('1 hour').click()
  const caption = page.locator('.chart figcaption').first()
  await expect.poll(() => caption.textContent()).toMatch(/decisions a minute [\d,]+/)
  // Of 61 steps, the last one is not over.
  expect(await caption.textContent()).toMatch(/decisions a minute 3,600 /)
  expect(await captionAt(page, 1)).toMatch(/decisions a minute –/)
})

test('round trips above the largest bound are shown as such, and not as none', async () => {
  const own = await startRedis()
  open.push(() => own.stop())
  const store = await storeOnRedis(own.port, 'slow:', open)
  const limiter = createLimiter({ name: 'slow', store, limit: 100, window: '1h' })
  const { url, close } = await servedStore(store, { limiters: [limiter] })
  open.push(close)
  own.kill('SIGSTOP')
  // One in sixteen is measured.
  const decisions = Array.from({ length: 64 }, () => limiter.consume('ann'))
  await sleep(1500)
  own.kill('SIGCONT')
  await Promise.all(decisions)
  const { page } = await opened(url, 'ann')
  const tile = page.locator('.tiles > div').filter({ hasText: 'Round trip' })
  await expect.poll(() => tile.textContent()).toMatch(/^Round trip> 1,000 ms99 %; half above 1,000 ms/)
})
