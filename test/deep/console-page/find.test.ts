// Deep: needs a browser.
import { byHeader, byIp, byUser, keyed, memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { consoleBrowser } from './browser.js'
import { servedStore } from './served.js'

// One box finds a client, without a kind to choose.

const { open, opened } = consoleBrowser()

interface App {
  readonly user: string
}

async function started(width = 1280) {
  const store = memoryStore()
  const limiters = [
    createGuard<App>({ name: 'web', store, limit: 2, window: '1h', key: byIp() }),
    createGuard<App>({ name: 'keys', store, limit: 2, window: '1h', key: byHeader('x-api-key') }),
    createGuard<App>({ name: 'users', store, limit: 2, window: '1h', key: byUser((app: App) => app.user) }),
    createGuard<App>({ name: 'logins', store, limit: 2, window: '1h', key: keyed('account', (app: App) => app.user) }),
  ]
  const { url, close } = await servedStore(store, { limiters })
  open.push(close)
  const headers: Record<string, string> = { 'x-api-key': 'k-4f1c' }
  for (let i = 0; i < 3; i++) {
    for (const limiter of limiters) {
      await limiter(contextOf({ request: { user: 'ann' }, ip: '192.0.2.7', headers }) as never)
    }
  }
  const { page, complaints } = await opened(url, 'ann', { width })
  const box = page.getByRole('search').first().getByRole('combobox')
  return { page, complaints, box }
}

const title = (page: Page) => page.getByRole('heading', { level: 1 }).textContent()

test.each([390, 1280])('a pasted address, key or account is found by Enter: %d px', async (width) => {
  const { page, complaints, box } = await started(width)
  for (const [text, name] of [
    ['192.0.2.7', /^ip 192\.0\.2\.7$/],
    ['198.18.4.0/24', /^ip 198\.18\.4\.0\/24$/],
    ['k-4f1c', /^header:x-api-key /],
    ['account ann', /^account ann$/],
  ] as const) {
    await box.fill(text)
    await page.keyboard.press('Enter')
    await expect.poll(() => title(page)).toMatch(name)
  }
  expect(page.url()).toMatch(/#\/client$/)
  expect(complaints).toEqual([])
})

test('where several kinds fit, one key chooses among them, and not before', async () => {
  const { page, box } = await started()
  await box.fill('bob')
  await page.keyboard.press('Enter')
  await page.getByText('It may be one of these: choose one.').waitFor()
  const options = page.getByRole('option')
  expect((await options.allTextContents()).map((each) => each.trim()).sort()).toEqual([
    'account bob',
    'header:x-api-key bob',
    'user bob',
  ])
  await options.filter({ hasText: 'user bob' }).click()
  await expect.poll(() => title(page)).toBe('user bob')
  // By keys alone.
  await box.fill('ann')
  await page.keyboard.press('Enter')
  await page.getByText('It may be one of these: choose one.').waitFor()
  const selected = page.getByRole('option', { selected: true })
  const first = await selected.textContent()
  await page.keyboard.press('ArrowDown')
  expect(await selected.textContent()).not.toBe(first)
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await expect.poll(() => title(page)).toMatch(/^(user|account) ann$/)
})

test('a slash moves to the box, which suggests clients that were refused', async () => {
  const { page, box } = await started()
  await page.keyboard.press('/')
  expect(await box.evaluate((element) => element.matches(':focus'))).toBe(true)
  expect(await box.inputValue()).toBe('')
  await page.getByRole('option', { name: /ip 192.0.2.7 refused 1 ×/ }).waitFor()
  await page.keyboard.type('192')
  await expect.poll(() => page.getByRole('option').count()).toBe(1)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect.poll(() => title(page)).toBe('ip 192.0.2.7')
  // A slash in a field is text.
  await box.fill('')
  await page.keyboard.type('10.0.0.0/8')
  expect(await box.inputValue()).toBe('10.0.0.0/8')
})
