// Deep: needs a browser. Runs alone: pages of other tests would show the calls, too.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { memoryStore } from '@sluice/core'
import { limitedFetch } from '@sluice/fetch'
import type { AxeResults } from 'axe-core'
import { expect, test } from 'vitest'
import { consoleBrowser, PICTURES, settled } from './browser.js'
import { servedStore } from './served.js'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOKS = [390, 1280].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)
const HOSTILE = '<img src=x onerror=alert(1)>\u{e9}'.repeat(8)

const { open, opened } = consoleBrowser()
const url = 'http://service.test/'

/** Calls a service whose responses are these. */
async function call(name: string, responses: Response[], store = memoryStore()): Promise<void> {
  const api = limitedFetch(async () => responses.shift() as Response, { name, store })
  while (responses.length > 0) await api(url)
}

const told = (name: string, remaining: number) =>
  new Response(null, {
    headers: { RateLimit: `"${name}";r=${remaining};t=3600`, 'RateLimit-Policy': `"${name}";q=50;w=3600` },
  })
const refusal = () => new Response(null, { status: 429, headers: { 'Retry-After': '600' } })

async function served() {
  const store = memoryStore()
  const { url, close } = await servedStore(store, {})
  open.push(close)
  return { url, store }
}

test('without calls to other services, the page says nothing of them', async () => {
  const { url } = await served()
  const { page } = await opened(url, 'ann')
  await page.getByText('this one: in memory').waitFor()
  expect(await page.getByText('Calls to other services').count()).toBe(0)
})

test.each(LOOKS)('calls to other services fit and pass axe: $width px, $colorScheme', async (look) => {
  const { url, store } = await served()
  const { page, complaints } = await opened(url, 'ann', look)
  const name = `partner-${look.width}-${look.colorScheme}`
  await call(name, [told('day', 41), told(HOSTILE, 40), refusal()], store)
  const row = page.getByRole('region', { name: 'Calls to other services, table' }).getByRole('row', { name })
  // Two were accepted, one was refused. The time may be tomorrow's.
  await expect
    .poll(() => row.textContent().catch(() => ''), { timeout: 20_000 })
    .toMatch(new RegExp(`^${name}21000(\\w+ \\d+ \\w+, )?\\d\\d:\\d\\d:\\d\\d$`))
  const limits = page.getByRole('region', { name: 'Limits of other services, table' }).getByRole('row')
  await limits.filter({ hasText: `${name}day41 of 50 requests` }).waitFor()
  await limits
    .filter({ hasText: name })
    .filter({ hasText: /<img src=x onerror=alert\(1\)>.*40 of 50 requests/ })
    .waitFor()
  expect(await page.locator('main img, main script, main [onerror]').count()).toBe(0)
  await settled(page)
  await page.evaluate(readFileSync(AXE, 'utf8'))
  await page.screenshot({ path: join(PICTURES, `outbound-${look.width}-${look.colorScheme}.png`), fullPage: true })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.width)
  const { violations } = (await page.evaluate(
    'axe.run({ preload: false, rules: { region: { enabled: true } } })',
  )) as AxeResults
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
  expect(complaints).toEqual([])
})
