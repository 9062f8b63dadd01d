// Deep: needs a browser.
import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { consoleBrowser, cutIn, PICTURES, settled } from './browser.js'
import { servedStore } from './served.js'

const { open, opened } = consoleBrowser()

/** A list whose entries have the reasons `reason 1` to `reason 30`, and their page. */
async function listPage(width: number) {
  const store = memoryStore()
  for (let n = 1; n <= 30; n++) await store.list('vip').add({ user: `user-${n}` }, { reason: `reason ${n}` })
  const { url, close } = await servedStore(store, { lists: ['vip'] })
  open.push(close)
  const { page, complaints } = await opened(`${url}/#/lists`, 'bob', { width })
  await settled(page)
  const reasons = () => page.locator('tbody tr:visible td:nth-child(2)').allTextContents()
  await expect.poll(async () => (await reasons()).length).toBe(width < 480 ? 10 : 30)
  return { page, complaints, reasons }
}

test('a title sorts the rows by keyboard: one way, the other way, and as they were', async () => {
  const { page, complaints, reasons } = await listPage(1280)
  const given = await reasons()
  const ascending = Array.from({ length: 30 }, (_, i) => `reason ${i + 1}`)
  const header = page.getByRole('columnheader', { name: 'Reason' })
  const title = header.getByRole('button', { name: 'Reason', exact: true })
  await title.focus()
  await page.keyboard.press('Enter')
  await expect.poll(reasons).toEqual(ascending)
  expect(await header.getAttribute('aria-sort')).toBe('ascending')
  await page.keyboard.press('Enter')
  await expect.poll(reasons).toEqual(ascending.toReversed())
  expect(await header.getAttribute('aria-sort')).toBe('descending')
  await page.keyboard.press('Space')
  await expect.poll(reasons).toEqual(given)
  expect(await header.getAttribute('aria-sort')).toBe(null)
  expect(complaints).toEqual([])
})

test.each([360, 1280])('a text filters the rows that are loaded, and says how many it shows: %d px', async (width) => {
  const { page, complaints, reasons } = await listPage(width)
  const field = page.getByRole('searchbox', { name: 'Filter Entries of vip' })
  expect(await field.getAttribute('placeholder')).toBe('Filter the 30 rows that are loaded')
  await field.fill('REASON 2')
  await expect
    .poll(async () => (await reasons()).sort())
    .toEqual(['reason 2', ...Array.from({ length: 10 }, (_, i) => `reason 2${i}`)])
  await page.getByText('11 of 30 rows').waitFor()
  await field.fill('nothing like that')
  await page.getByText('0 of 30 rows').waitFor()
  await field.fill('')
  const all = page.getByRole('button', { name: 'Show all 30' })
  await expect.poll(() => all.count()).toBe(width < 480 ? 1 : 0)
  if (width < 480) await all.click()
  await expect.poll(async () => (await reasons()).length).toBe(30)
  expect(await all.count()).toBe(0)
  await page.screenshot({ path: `${process.cwd()}/.tmp/tables-${width}.png` })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  expect(complaints).toEqual([])
})

test.each([1280, 390])('no column of the blocks is below their buttons: %d px', async (width) => {
  const store = memoryStore()
  await store.blocks.add({ ip: '192.0.2.128/25' }, { for: '1d', reason: 'scraping of /search' })
  await store.blocks.add({ ip: '198.51.100.7' }, { for: '7d', reason: 'asked for by the shop', policy: 'search' })
  const { url, close } = await servedStore(store, {})
  open.push(close)
  const { page, complaints } = await opened(`${url}/#/blocks`, 'ann', { width })
  await page.getByRole('button', { name: 'Unblock' }).first().waitFor()
  await page.screenshot({ path: `${PICTURES}/blocks-${width}.png` })
  expect(await cutIn(page)).toEqual([])
  expect(complaints).toEqual([])
})

test('the log says what holds after a block that replaces another, and which version came back', async () => {
  const store = memoryStore()
  const { url, close } = await servedStore(store, {})
  open.push(close)
  const { page, complaints } = await opened(`${url}/#/blocks`, 'ann')
  const headers = { 'Content-Type': 'application/json', 'Sluice-Console': '1' }
  for (const time of ['1h', '1d', 'forever']) {
    const data = { identity: { kind: 'ip', value: '198.51.100.0/24' }, for: time, reason: 'scraping', confirmed: true }
    expect((await page.request.post(`${url}/api/block`, { data, headers })).ok()).toBe(true)
  }
  const change = {
    by: 'ann',
    action: 'rollback',
    before: { document: 'default', version: 2 },
    after: { document: 'default', version: 3, sameAs: 1 },
  }
  await store.changes.record(change, async () => {})
  await page.evaluate(`location.hash = '#/changes'`)
  const rows = page.getByRole('row')
  await rows.nth(4).waitFor()
  const lines = async (row: number) => await rows.nth(row).getByRole('listitem').allTextContents()
  expect(await lines(1)).toEqual(['version 2 → 3, the same as 1'])
  expect(await lines(2)).toEqual(['for: ever', expect.stringMatching(/^until: .* → none$/)])
  expect(await lines(3)).toEqual(['for: 1d', expect.stringMatching(/^until: .*\d → .*\d$/)])
  expect(await lines(4)).toEqual(['for: 1h', expect.stringMatching(/^until: .*\d$/)])
  for (const width of [1280, 1024, 390]) {
    await page.setViewportSize({ width, height: 800 })
    expect(await cutIn(page), `at ${width} px`).toEqual([])
    await page.screenshot({ path: `${PICTURES}/changes-${width}.png`, fullPage: true })
  }
  expect(complaints).toEqual([])
})
