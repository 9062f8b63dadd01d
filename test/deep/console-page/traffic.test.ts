// Deep: needs a browser.
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { consoleFor } from '@sluice/console/express'
import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import type { AxeResults } from 'axe-core'
import express from 'express'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { portOf } from '../../console/support.js'
import { contextOf } from '../../support/context.js'
import { consoleBrowser, PICTURES, settled } from './browser.js'
import { servedStore } from './served.js'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOKS = [360, 1280].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)
const HOSTILE = '/<img/src=x/onerror=alert(1)>/%E2%80%AEadmin'

const { open, opened } = consoleBrowser()

/** A service with a console. @param traffic whether it records */
async function served(traffic = true) {
  const store = memoryStore()
  const limiters = [
    rateLimit({ name: 'api', store, limit: 40, window: '1h' }),
    rateLimit({ name: 'login', store, limit: 3, window: '1h' }),
  ]
  const handler = consoleFor({ store, limiters, traffic, authorize: () => ({ name: 'ann', may: 'act' }) })
  const app = express().set('trust proxy', 1).use('/sluice', handler)
  app.use('/login', limiters[1] as never)
  app.use(limiters[0] as never, (_req, res) => void res.send('ok'))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => server.closeAllConnections(),
    () => handler.close(),
  )
  const port = portOf(server)
  const send = (ip: string, path: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'x-forwarded-for': ip }
      request({ port, host: '127.0.0.1', path, headers, agent: false }, (response) => {
        response.resume().on('end', () => resolve())
      })
        .on('error', reject)
        .end()
    })
  for (let n = 0; n < 45; n++) await send('192.0.2.7', `/orders/${1000 + n}`)
  for (let n = 0; n < 8; n++) await send('198.51.100.4', '/login')
  for (let n = 0; n < 6; n++) await send(`203.0.113.${n}`, n % 2 ? '/health' : '/search?q=x')
  for (let n = 0; n < 4; n++) await send('2001:db8:1:2::3', HOSTILE)
  return { url: `http://127.0.0.1:${port}/sluice/`, send }
}

async function checked(page: Page, name: string, look: (typeof LOOKS)[number]): Promise<void> {
  await settled(page)
  await page.screenshot({ path: join(PICTURES, `${name}-${look.width}-${look.colorScheme}.png`), fullPage: true })
  expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBe(look.width)
  const { violations } = (await page.evaluate(
    'axe.run({ preload: false, rules: { region: { enabled: true } } })',
  )) as AxeResults
  expect(violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
}

test.each(LOOKS)('traffic fits and passes axe: $width px, $colorScheme', async (look) => {
  const { url, send } = await served()
  const { page, complaints } = await opened(`${url}#/traffic`, 'ann', look)
  await page.evaluate(readFileSync(AXE, 'utf8'))
  await page.getByRole('button', { name: 'ip 192.0.2.7' }).waitFor()
  await checked(page, 'traffic-full', look)
  await page.evaluate("location.hash = '/near'")
  await page.getByText(/limits used up/).click()
  await page.getByRole('link', { name: 'ip 192.0.2.7' }).waitFor()
  await checked(page, 'near-full', look)
  await page.evaluate("location.hash = '/traffic'")
  await page.getByRole('button', { name: 'Watch' }).click()
  await expect
    .poll(
      async () => {
        await send('203.0.113.77', '/orders/1')
        return page.getByRole('region', { name: 'Live decisions, table' }).getByRole('row').count()
      },
      { timeout: 30_000, interval: 500 },
    )
    .toBeGreaterThan(12)
  await page.getByRole('button', { name: 'Pause' }).click()
  await checked(page, 'traffic-live', look)
  await page.getByRole('searchbox', { name: 'Filter Live decisions' }).fill('nothing like that')
  await page.getByText(/^0 of \d+ rows$/).waitFor()
  expect(await page.locator('.tail tbody tr:visible').count()).toBe(0)
  await page.getByRole('button', { name: '/orders/:number' }).click()
  await page.getByRole('button', { name: 'Remove the filter by path' }).waitFor()
  await checked(page, 'traffic-filtered', look)
  expect(complaints).toEqual([])
})

test('each value is a filter, the address is a link to send, and names no client', async () => {
  const { url } = await served()
  const { page, complaints } = await opened(`${url}#/traffic`, 'ann')
  const filtersOf = (on: Page) => on.getByRole('list', { name: 'Filters' }).getByRole('listitem').allTextContents()
  await page.getByRole('button', { name: 'limit used up' }).click()
  await page.getByRole('button', { name: 'login', exact: true }).click()
  await page.getByRole('button', { name: 'ip 198.51.100.4' }).click()
  await expect.poll(() => filtersOf(page)).toHaveLength(1)
  await page.getByRole('combobox', { name: 'Span' }).selectOption('1h')
  await expect.poll(() => page.url()).toMatch(/#\/traffic\?(.*&)?policy=login.*span=1h|span=1h.*policy=login/)
  expect(page.url()).not.toMatch(/198|51\.100/)
  const link = await opened(page.url(), 'ann')
  await expect.poll(async () => (await filtersOf(link.page)).join('; ')).toMatch(/Client ip 198\.51\.100\.4/)
  const chosenOf = (name: string) => link.page.getByRole('combobox', { name }).inputValue()
  expect([await chosenOf('Policy'), await chosenOf('Outcome')]).toEqual(['login', 'limited'])
  await link.page.getByRole('row', { name: /\/login 5 5/ }).waitFor()
  const clients = link.page.getByRole('region', { name: 'Clients, table' }).getByRole('row')
  await expect
    .poll(() => clients.allTextContents())
    .toEqual([expect.anything(), expect.stringMatching(/198\.51\.100\.4/)])
  await link.page.getByText(/what fits the filters\. All traffic, without them: 66 decisions/).waitFor()
  await link.page.getByRole('button', { name: 'Remove the filter by client' }).click()
  await expect.poll(() => filtersOf(link.page)).toHaveLength(0)
  await link.page.goBack()
  await expect.poll(() => filtersOf(link.page)).toHaveLength(1)
  await link.page.getByRole('link', { name: 'Open ip 198.51.100.4' }).click()
  await link.page.getByText('It is refused now.').waitFor()
  expect(link.page.url()).toBe(`${url}#/client`)
  await link.page.getByRole('button', { name: 'Link', exact: true }).click()
  await expect.poll(() => link.page.getByRole('status').textContent()).toMatch(/link to this client, for operators/)
  expect(link.page.url()).toMatch(/#\/client\?id=[\w-]{16}$/)
  const sent = await opened(link.page.url(), 'bob')
  await sent.page.getByRole('heading', { level: 1, name: 'ip 198.51.100.4' }).waitFor()
  await sent.page.getByText('It is refused now.').waitFor()
  const ended = await opened(`${url}#/client?id=pQ5c0nqT1zE7vYbX`, 'bob')
  await ended.page.getByText('This link to a client has ended').waitFor()
  expect([...complaints, ...link.complaints, ...sent.complaints, ...ended.complaints]).toEqual([])
})

test('paths of an attacker stay text', async () => {
  const { url } = await served()
  const { page, complaints } = await opened(`${url}#/traffic`, 'ann')
  await page.getByRole('button', { name: /onerror/ }).click()
  await page.getByRole('button', { name: 'Remove the filter by path' }).waitFor()
  expect(await page.locator('main img, main script, main [onerror]').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('while no process records, the page says how to begin', async () => {
  const { url } = await served(false)
  const { page } = await opened(`${url}#/traffic`, 'ann')
  await page.getByText(/Set traffic: true in consoleFor/).waitFor()
})

test.each([390, 1280])(
  'whoever scrolls down live decisions reads rows that stay where they are: %d px',
  async (width) => {
    const { url, send } = await served()
    const { page, complaints } = await opened(`${url}#/traffic`, 'ann', { width })
    await page.getByRole('button', { name: 'Watch' }).click()
    const list = page.locator('.tail')
    const sendSome = async () => {
      for (let n = 0; n < 10; n++) await send(`203.0.113.${n}`, '/orders/1')
    }
    const overflows = async () => {
      await sendSome()
      return list.evaluate((element) => element.scrollHeight > element.clientHeight + 60)
    }
    await expect.poll(overflows, { timeout: 30_000, interval: 500 }).toBe(true)
    const pageHeight = () => page.evaluate('document.documentElement.scrollHeight')
    const height = await pageHeight()
    await list.evaluate((element) => element.scrollTo(0, 40))
    const state = page.getByText(/^Held while you read; scroll up to go on\. \d+ newer decisions\./)
    await page.getByText(/^Held while you read/).waitFor()
    const places = () =>
      list
        .getByRole('row')
        .evaluateAll((rows) => rows.map((row) => `${row.getBoundingClientRect().top} ${row.textContent}`))
    const before = await places()
    await expect.poll(() => sendSome().then(() => state.count()), { timeout: 30_000, interval: 500 }).toBe(1)
    expect(await places()).toEqual(before)
    expect(await pageHeight()).toBe(height)
    await list.evaluate((element) => element.scrollTo(0, 0))
    await expect.poll(places).not.toEqual(before)
    expect(complaints).toEqual([])
  },
)

test('live decisions keep to the filters, and pause', async () => {
  const { url, send } = await served()
  const { page, complaints } = await opened(`${url}#/traffic`, 'ann')
  await page.getByRole('combobox', { name: 'Policy' }).selectOption('login')
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('every refusal')
  await page.getByRole('button', { name: 'Watch' }).click()
  const rows = page.getByRole('region', { name: 'Live decisions, table' }).getByRole('row')
  const sendBoth = async () => {
    for (let n = 0; n < 5; n++) await send('203.0.113.7', '/login')
    await send('203.0.113.8', '/other')
    return rows.count()
  }
  await expect.poll(sendBoth, { timeout: 30_000, interval: 500 }).toBeGreaterThan(2)
  const texts = (await rows.allTextContents()).slice(1)
  for (const text of texts) expect(text).toMatch(/limit used upip 203\.0\.113\.7login\/login$/)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/^Paused\./).waitFor()
  const before = await rows.count()
  await expect
    .poll(() => sendBoth().then(() => page.getByText(/^Paused\. \d+ newer decisions\./).count()), {
      timeout: 30_000,
      interval: 500,
    })
    .toBe(1)
  expect(await rows.count()).toBe(before)
  await page.getByRole('button', { name: 'Go on' }).click()
  await expect.poll(() => rows.count()).toBeGreaterThan(before)
  expect(page.url()).not.toMatch(/203/)
  expect(complaints).toEqual([])
})

test('live decisions that were held are there again after the page of a client, and go on', async () => {
  const { url, send } = await served()
  const { page, complaints } = await opened(`${url}#/traffic`, 'ann')
  await page.getByRole('button', { name: 'Watch' }).click()
  const rows = page.getByRole('region', { name: 'Live decisions, table' }).getByRole('row')
  const sendSome = async () => {
    for (let n = 0; n < 5; n++) await send('203.0.113.7', '/orders/1')
    return rows.count()
  }
  await expect.poll(sendSome, { timeout: 30_000, interval: 500 }).toBeGreaterThan(3)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/^Paused\./).waitFor()
  const before = await rows.allTextContents()
  await rows.nth(1).getByRole('link').click()
  await page.getByRole('heading', { level: 1, name: 'ip' }).waitFor()
  await page.goBack()
  await page.getByText(/^Paused\./).waitFor()
  expect(await rows.allTextContents()).toEqual(before)
  // Neither does another filter, whose decisions are not held, lose them.
  await page.getByRole('button', { name: '203.0.113.0/24' }).click()
  await page.getByRole('button', { name: 'Remove the filter by network' }).waitFor()
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await page.goBack()
  await page.getByText(/^Paused\./).waitFor()
  expect(await rows.allTextContents()).toEqual(before)
  await page.getByRole('button', { name: 'Go on' }).click()
  await expect.poll(sendSome, { timeout: 30_000, interval: 500 }).toBeGreaterThan(before.length)
  // Another filter has other rows.
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('blocked')
  await page.getByText('Nothing that fits was decided yet.').waitFor()
  expect(complaints).toEqual([])
})

test('a request of several policies of a document counts for each, and the page says so', async () => {
  const store = memoryStore()
  const limits = [{ limit: 9, window: '1h' }]
  const document = await policies.from({ object: { version: 1, policies: { one: { limits }, other: { limits } } } })
  const { url, close } = await servedStore(store, { policies: document, traffic: true })
  open.push(
    () => document.close(),
    () => close(),
  )
  await createGuard({ store, policies: document })(contextOf({ ip: '192.0.2.7' }))
  const { page } = await opened(`${url}/#/traffic`, 'ann')
  await page.getByText(/^1 decision in all/).waitFor()
  await page.getByText('A request counts for each policy that decided it.').waitFor()
  await page.getByText(/A request has several decisions where/).waitFor()
  await page.getByRole('link', { name: 'Open ip 192.0.2.0/24' }).click()
  await page.getByRole('heading', { level: 1, name: 'ip 192.0.2.0/24' }).waitFor()
})
