// Deep: needs a browser.
import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { consoleBrowser, settled } from './browser.js'
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
  await expect.poll(async () => (await reasons()).length).toBe(30)
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
  await expect.poll(async () => (await reasons()).length).toBe(30)
  await page.screenshot({ path: `${process.cwd()}/.tmp/tables-${width}.png` })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  expect(complaints).toEqual([])
})
