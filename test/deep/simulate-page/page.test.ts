// Deep: needs a browser.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pageOf } from '../../../packages/simulate/src/report/html/page.js'
import { withPseudonyms } from '../../../packages/simulate/src/report/pseudonyms.js'
import type { SimulationReport } from '../../../packages/simulate/src/report.js'
import { chromiumPath } from '../../../scripts/programs.js'
import { HOSTILE, withTexts } from '../../simulate/hostile-texts.js'
import { sampleReport } from '../../simulate/sample-report.js'

/** Pictures for people to look at. */
const PICTURES = fileURLToPath(new URL('../../../.tmp/simulate-page/', import.meta.url))
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOKS = [360, 1280].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)

let folder: string
let browser: Browser
beforeAll(async () => {
  const executablePath = chromiumPath()
  if (!executablePath) throw new Error('no Chromium: node scripts/programs.js chromium, or set CHROMIUM')
  folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
  mkdirSync(PICTURES, { recursive: true })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
afterAll(async () => {
  await browser.close()
  rmSync(folder, { recursive: true })
})

interface Look {
  readonly width: number
  readonly colorScheme: 'light' | 'dark'
}

interface Opened {
  readonly page: Page
  /** Everything that the page asked for, and everything that the browser complained of. */
  readonly events: readonly string[]
}

async function opened(report: SimulationReport, { width, colorScheme }: Look): Promise<Opened> {
  const file = join(folder, 'report.html')
  writeFileSync(file, pageOf(report))
  const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } })
  const events: string[] = []
  page.on('request', (request) => events.push(`requests ${request.url()}`))
  page.on('console', (message) => events.push(`${message.type()}: ${message.text()}`))
  page.on('pageerror', (error) => events.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => events.push(`dialog: ${dialog.message()}`))
  const url = String(pathToFileURL(file))
  await page.goto(url, { waitUntil: 'load' })
  expect(events.shift()).toBe(`requests ${url}`)
  return { page, events }
}

const pseudonymous = () => withPseudonyms(sampleReport(), Buffer.alloc(32))

test.each(LOOKS)('the page asks for nothing, fits and passes axe: $width px, $colorScheme', async (look) => {
  const { page, events } = await opened(pseudonymous(), look)
  await page.screenshot({ path: join(PICTURES, `${look.width}-${look.colorScheme}.png`), fullPage: true })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.width)
  // What is closed is not examined.
  await page.evaluate('document.querySelectorAll("details").forEach((details) => { details.open = true })')
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.width)
  expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(
    look.colorScheme === 'dark' ? 'rgb(13, 17, 23)' : 'rgb(255, 255, 255)',
  )
  await page.addInitScript({ path: AXE })
  await page.reload()
  await page.evaluate('document.querySelectorAll("details").forEach((details) => { details.open = true })')
  const { violations, passes } = (await page.evaluate('axe.run({ preload: false })')) as AxeResults
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
  expect(passes.map(({ id }) => id)).toEqual(expect.arrayContaining(['color-contrast', 'svg-img-alt', 'region']))
  expect(events.filter((event) => !event.startsWith('requests file:'))).toEqual([])
  await page.close()
})

test('people who do not see the page find its parts, tables and plots by their names', async () => {
  const { page } = await opened(pseudonymous(), { width: 1280, colorScheme: 'light' })
  await expect(await page.locator('body').ariaSnapshot()).toMatchFileSnapshot('accessibility-tree.txt')
  await page.close()
})

test('a wide table scrolls by keys', async () => {
  const { page } = await opened(pseudonymous(), { width: 360, colorScheme: 'light' })
  const table = page.getByRole('region', { name: 'Clients with the most refusals' })
  for (let i = 0; i < 30 && !(await table.evaluate((element) => element.matches(':focus'))); i++)
    await page.keyboard.press('Tab')
  await page.keyboard.press('ArrowRight')
  await expect.poll(() => table.evaluate((element) => element.scrollLeft)).toBeGreaterThan(0)
  await page.close()
})

test.each(HOSTILE)('a text of a client changes nothing in a browser: %j', async (text) => {
  const { page, events } = await opened(withTexts(sampleReport(), text), { width: 360, colorScheme: 'light' })
  expect(await page.title()).toBe('Simulation of rate limits, 2026-11-25 00:00:00 to 2026-11-25 23:59:59 UTC')
  expect(await page.evaluate('document.scripts.length + document.images.length + document.styleSheets.length')).toBe(2)
  const seen = await page.locator('.agent').first().textContent()
  expect(seen).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  // The escapes aside, it is what the client sent.
  if (/^[\x20-\x7e]*$/.test(text)) expect(seen).toBe(text)
  expect(await page.evaluate('JSON.parse(document.getElementById("report").textContent).refused[0].agent')).toBe(text)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
  expect(events).toEqual([])
  await page.close()
})
