// Deep: needs a browser.
import { readFileSync } from 'node:fs'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'
import { consoleBrowser, settled } from './browser.js'
import { servedStore } from './served.js'

const { open, opened } = consoleBrowser()

test('a number below a limit shows at most how many requests it would have refused', async () => {
  const store = memoryStore()
  const limiter = createLimiter({ name: 'lowered', store, limits: [slidingLog({ limit: 10, window: '1h' })] })
  const { url, close } = await servedStore(store, { limiters: [limiter] })
  open.push(close)
  for (let n = 0; n < 8; n++) await limiter.consume('ann')
  const { page, complaints } = await opened(`${url}/#/policies`, 'bob')
  await settled(page)
  const units = page.getByRole('spinbutton', { name: 'Units' })
  await units.waitFor({ timeout: 15_000 })
  const sentence = page.getByText(/would have refused/)
  await expect
    .poll(() => sentence.textContent())
    .toMatch(/^5 per h would have refused at most 3 \(37.5%\) of 8 decisions since/)
  await units.fill('8')
  await expect.poll(() => sentence.textContent()).toMatch(/^8 per h would have refused none of 8 decisions since/)
  await units.fill('10')
  await page.getByText('Type a number from 1 to 9.').waitFor()
  expect(complaints).toEqual([])
})

test('a link of the Grafana dashboard opens the page, with the limits of the policy marked', async () => {
  const store = memoryStore()
  const limiters = ['mail', 'sms-more'].map((name) => createLimiter({ name, store, limit: 10, window: '1h' }))
  const { url, close } = await servedStore(store, { limiters })
  open.push(close)
  const dashboard = readFileSync(new URL('../../../packages/prometheus/dashboard.json', import.meta.url), 'utf8')
  const panels: { fieldConfig?: { defaults: { links?: { url: string }[] } } }[] = JSON.parse(dashboard).panels
  const addresses = new Set(
    panels.flatMap(({ fieldConfig }) => fieldConfig?.defaults.links ?? []).map((link) => link.url),
  )
  expect(addresses.size).toBe(1)
  for (const address of addresses) {
    // As Grafana does.
    const shown = address
      .replace(/\$\{console\}/, url)
      .replace(/\$\{__field\.labels\.policy:percentencode\}/, 'sms-more')
    const { page, complaints } = await opened(shown, 'bob')
    await expect.poll(() => page.locator('tr.marked td:first-child').allTextContents()).toEqual(['sms-more'])
    expect(complaints).toEqual([])
  }
})

test('a limit of a document links to its line, which is marked', async () => {
  const limits = [{ limit: 5, window: '1h' }]
  const document = await policies.from({ object: { version: 1, policies: { api: { limits }, login: { limits } } } })
  open.push(() => document.close())
  const { url, close } = await servedStore(memoryStore(), { policies: { policies: document, name: 'web' } })
  open.push(close)
  const { page, complaints } = await opened(`${url}/#/policies`, 'bob')
  const yaml = page.locator('pre.yaml')
  const link = page.getByRole('row', { name: /^login/ }).getByRole('link', { name: 'line 9' })
  await link.waitFor()
  expect(await yaml.isVisible()).toBe(false)
  await link.focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => yaml.locator('.marked').textContent()).toBe('      - limit: 5\n')
  expect(await yaml.isVisible()).toBe(true)
  expect(await yaml.locator('.marked:focus').count()).toBe(1)
  expect((await yaml.textContent())?.split('\n')[6]).toBe('  login:')
  expect(complaints).toEqual([])
})
