// Deep: needs a browser. Runs alone: it watches every decision of its process.
import { memoryStore, storeList } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { consoleBrowser, show } from './browser.js'
import { servedStore } from './served.js'

const { open, opened } = consoleBrowser()

async function served() {
  const store = memoryStore()
  const web = createGuard({ name: 'web', store, limit: 2, window: '1h', allow: storeList('partners') })
  const { url, close } = await servedStore(store, { limiters: [web], lists: ['partners'], traffic: true })
  open.push(close)
  await store.list('partners').add({ ip: '192.0.2.9' })
  for (const ip of ['192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.8', '203.0.113.1']) await web(contextOf({ ip }))
  return { store, url }
}

/** Opens the dialog. Resolves to it, and to its effect on an identity. */
async function dialogOn(page: Page) {
  await show(page, 'blocks')
  await page.getByRole('button', { name: 'Block a client' }).click()
  const dialog = page.getByRole('dialog')
  return {
    dialog,
    effectOn: async (value: string) => {
      await dialog.getByRole('textbox', { name: 'Value' }).fill(value)
      await dialog.getByText(new RegExp(`every process refuses.*${value.replaceAll('.', '\\.')}, by`)).waitFor()
      return dialog.getByRole('listitem').allTextContents()
    },
  }
}

test.each([390, 1280])('the dialog shows the effect of a block before it is made: %d px', async (width) => {
  const { url, store } = await served()
  const { page, complaints } = await opened(url, 'ann', { width })
  const { dialog, effectOn } = await dialogOn(page)
  expect(await effectOn('192.0.2.0/24')).toEqual([
    'You (127.0.0.1) are not in it.',
    'In the last hour: at least 4 decisions of 2 clients in it, 1 of them refused.',
    'In the last 15 minutes: 1 recorded refusal of 1 client in it.',
    '1 entry of the list partners in this network is let in all the same.',
    expect.stringMatching(/^Not touched: /),
  ])
  expect(await effectOn('192.0.2.9')).toContain('web lets it in all the same, by the list partners.')
  await dialog.getByRole('combobox', { name: 'For' }).selectOption('until it is ended')
  await dialog.getByText('until the block is ended').waitFor()
  await dialog.getByRole('textbox', { name: 'Value' }).fill('192.0.2')
  await dialog.getByText(/Expected an address/).waitFor()
  expect(await dialog.getByRole('button', { name: 'Block', exact: true }).isDisabled()).toBe(true)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  expect((await store.blocks.list()).entries).toEqual([])
  expect(complaints).toEqual([])
})

test('operators who block themselves are told so before, and are not asked again', async () => {
  const { url, store } = await served()
  const { page } = await opened(url, 'ann')
  const { dialog, effectOn } = await dialogOn(page)
  await effectOn('127.0.0.0/8')
  await dialog.getByText('You block yourself').waitFor()
  expect(await dialog.getByRole('button', { name: 'Block', exact: true }).count()).toBe(0)
  await dialog.getByRole('button', { name: 'Block all the same' }).click()
  await page.getByRole('row', { name: /127\.0\.0\.0\/8 block every policy ann/ }).waitFor()
  expect((await store.blocks.list()).entries).toMatchObject([{ value: '127.0.0.0/8' }])
})
