// Deep: needs a browser.
import { memoryStore } from '@sluice/core'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { consoleBrowser, settled } from './browser.js'
import { servedStore } from './served.js'

const { open, opened } = consoleBrowser()
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

async function overview(query: string) {
  const { url, close } = await servedStore(memoryStore(), {})
  open.push(close)
  const shown = await opened(`${url}/#/overview${query}`, 'bob')
  await settled(shown.page)
  return shown
}

/** Has each step have five decisions, two of them refusals, and a process since `first`. */
const withFigures = (page: Page, first = 0) =>
  page.route('**/api/figures/history', async (route) => {
    const { from, to, step } = route.request().postDataJSON()
    const stepMs = step === 'hour' ? HOUR_MS : HOUR_MS / 60
    const begin = Math.floor(from / stepMs)
    const at = Array.from({ length: Math.floor(to / stepMs) - begin + 1 }, (_, i) => (begin + i) * stepMs)
    const each = (value: number) => at.map(() => value)
    const processes = at.map((start) => Number(start + stepMs > first))
    const json = { step, now: Date.now(), at, processes, decisions: each(5), refused: each(2) }
    const none = { reported: each(0), alone: each(0), awayMs: each(0), rows: [], responses: [], notes: [] }
    await route.fulfill({ json: { ...json, ...none, roundTrip: { p50: each(1), p99: each(1) } } })
  })

/** The span in the address, in ms, and how long before now it ends. */
async function spanIn(page: Page): Promise<{ ms: number; endedMs: number }> {
  const [, query] = (await page.evaluate<string>('location.hash')).split('?', 2)
  const { from = '', to = '' } = Object.fromEntries(new URLSearchParams(query))
  return { ms: Date.parse(to) - Date.parse(from), endedMs: Date.now() - Date.parse(to) }
}
const near = (ms: number) => [expect.closeTo(ms / HOUR_MS, -0.3)]
const hours = async (page: Page) => [(await spanIn(page)).ms / HOUR_MS]

test('spans of up to 90 days have an address, and fit a request', async () => {
  const { page, complaints } = await overview('')
  const bodies: { from: number; to: number; step: string }[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/figures/history')) bodies.push(request.postDataJSON())
  })
  for (const [name, span, step, days] of [
    ['24 hours', '24h', 'minute', 1],
    ['30 days', '30d', 'hour', 30],
    ['90 days', '90d', 'hour', 90],
  ] as const) {
    await page.getByText(name, { exact: true }).click()
    await expect.poll(() => page.url()).toContain(`?span=${span}`)
    await page.getByRole('img', { name: /Decisions and refusals (in|an)/ }).waitFor()
    const body = bodies.at(-1)
    expect(body?.step).toBe(step)
    expect(((body?.to ?? 0) - (body?.from ?? 0)) / DAY_MS).toBeGreaterThanOrEqual(days - 0.01)
  }
  expect(complaints).toEqual([])
})

test('buttons and the mouse change the span, and the address opens it again', async () => {
  const { page, complaints } = await overview('')
  await withFigures(page)
  await page.getByText('24 hours', { exact: true }).click()
  const press = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).focus()
    await page.keyboard.press('Enter')
  }
  await press('Zoom in')
  await expect.poll(() => hours(page)).toEqual(near(12 * HOUR_MS))
  // The newest figures stay in sight.
  expect((await spanIn(page)).endedMs / HOUR_MS).toBeLessThan(0.1)
  await press('Earlier')
  await expect.poll(async () => [(await spanIn(page)).endedMs / HOUR_MS]).toEqual(near(6 * HOUR_MS))
  for (let i = 0; i < 4; i++) await press('Later')
  await expect.poll(async () => (await spanIn(page)).endedMs / HOUR_MS).toBeLessThan(0.1)
  await press('Zoom out')
  await expect.poll(() => hours(page)).toEqual(near(24 * HOUR_MS))
  const chart = await page.locator('.u-over').boundingBox()
  if (!chart) throw new Error('no chart')
  await page.mouse.move(chart.x + chart.width / 2, chart.y + 40)
  await page.mouse.down()
  await page.mouse.move(chart.x + chart.width / 4, chart.y + 60, { steps: 4 })
  await page.mouse.up()
  await expect.poll(() => hours(page)).toEqual(near(6 * HOUR_MS))
  const address = page.url()
  const again = await opened(address, 'bob')
  await again.page.getByText(/^(No figures before|This span has no figures)/).waitFor()
  expect(again.page.url()).toBe(address)
  await page.goBack()
  await expect.poll(() => hours(page)).toEqual(near(24 * HOUR_MS))
  expect(complaints).toEqual([])
})

test('steps that have no pixel of their own are added up', async () => {
  const { page } = await overview('')
  await withFigures(page)
  await page.getByText('90 days', { exact: true }).click()
  // 2,160 hours on a chart of fewer than 1,000 pixels.
  const name = /Decisions and refusals in 3 hours. Latest: decisions in 3 hours 15, refused 6, decided alone 0/
  await page.getByRole('img', { name }).waitFor()
})

test('a span before the first figures says when they begin', async () => {
  const { page, complaints } = await overview('')
  // In the middle of an hour, so that minutes have to be looked at.
  const first = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS + 21 * 60_000
  await withFigures(page, first)
  const query = new URLSearchParams({
    from: new Date(first - 3 * HOUR_MS).toISOString(),
    to: new Date(first - HOUR_MS).toISOString(),
  })
  await page.evaluate(`location.hash = '#/overview?${query}'`)
  await page.getByText(/^No figures before .*\b\d\d:21:00\.$/).waitFor()
  expect(await page.locator('.uplot').count()).toBe(0)
  // The hour of the first figures has some.
  await page.evaluate(
    `location.hash = '#/overview?${new URLSearchParams({
      from: new Date(first - HOUR_MS).toISOString(),
      to: new Date(first + HOUR_MS / 2).toISOString(),
    })}'`,
  )
  await page.locator('.uplot').waitFor()
  expect(complaints).toEqual([])
})
