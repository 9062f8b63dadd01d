import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Locator, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { chromiumPath } from '../../../scripts/programs.js'
import { ensureBuilt } from '../../support/built-core.js'
import { closedAfterEach } from '../../support/closed-after-each.js'

/** Pictures for people to look at. */
export const PICTURES = fileURLToPath(new URL('../../../.tmp/console-page/', import.meta.url))

export interface Look {
  readonly width?: number
  readonly colorScheme?: 'light' | 'dark'
}

export const PAGES = [
  'overview',
  'traffic',
  'client',
  'policies',
  'offenders',
  'near',
  'blocks',
  'lists',
  'changes',
] as const

/** Tables that are wider than their place, so that a part of them is out of sight or below a button. */
export const cutIn = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`[...document.querySelectorAll('.table')]
    .filter((table) => table.scrollWidth > table.clientWidth)
    .map((table) => table.ariaLabel + ': ' + table.scrollWidth + ' px in ' + table.clientWidth + ' px')`)

/** Starts a browser for the tests of a file. `open`: what is closed after each of them. */
export function consoleBrowser() {
  let browser: Browser
  beforeAll(async () => {
    const executablePath = chromiumPath()
    if (!executablePath) throw new Error('no Chromium: node scripts/programs.js chromium, or set CHROMIUM')
    // The page is in the build alone.
    ensureBuilt('core', 'policies', 'console')
    mkdirSync(PICTURES, { recursive: true })
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  })
  afterAll(() => browser?.close())
  const open = closedAfterEach()

  /** The page as an operator opens it, and everything that the browser complained of. */
  async function opened(url: string, who: string, look: Look = {}) {
    const { page, complaints } = await tab(url, who, look)
    await page.goto(url, { waitUntil: 'load' })
    await page.getByRole('heading', { level: 1 }).waitFor()
    return { page, complaints }
  }

  /** A tab for the page, which is empty so far. */
  async function tab(url: string, who: string, { width = 1280, colorScheme = 'light' }: Look = {}) {
    const context = await browser.newContext({
      colorScheme,
      viewport: { width, height: 800 },
      timezoneId: 'Asia/Tokyo',
    })
    open.push(() => context.close())
    await context.addCookies([{ name: 'who', value: who, url }])
    await context.addInitScript(
      "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))",
    )
    const page = await context.newPage()
    const complaints: string[] = []
    const { origin } = new URL(url)
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`)) complaints.push(`requests ${request.url()}`)
    })
    page.on('console', (message) => {
      // A refusal of the API is shown as a sentence; the browser notes it as well.
      if (!/Failed to load resource/.test(message.text())) complaints.push(`${message.type()}: ${message.text()}`)
    })
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`))
    return { page, complaints }
  }

  return { open, opened, tab }
}

export async function show(page: Page, name: (typeof PAGES)[number]): Promise<void> {
  await page.evaluate(`location.hash = '/${name}'`)
  await page.locator(`nav a[href="#/${name}"][aria-current="page"]`).waitFor()
  await settled(page)
}

/** Nothing waits for an answer. */
export async function settled(page: Page): Promise<void> {
  await expect
    .poll(() => page.getByText(/^(One moment|Waiting for the first figures)\.$/).count(), { timeout: 20_000 })
    .toBe(0)
}

/** @param shows what the page of the client says at first */
export async function find(
  page: Page,
  kind: string,
  value: string,
  shows = /refused now|would be admitted now/,
): Promise<void> {
  const search = page.getByRole('search').first()
  await search.getByRole('combobox').fill(`${kind} ${value}`)
  await page.keyboard.press('Enter')
  await page.getByText(shows).first().waitFor()
}

/** Presses Tab until an element has the focus, as who has no mouse does. */
export async function tabTo(page: Page, name: string, within: Page | Locator = page): Promise<void> {
  const wanted = within.getByRole('button', { name, exact: true }).first()
  await wanted.waitFor()
  // What is disabled, as until a plan is there, has no focus.
  await expect.poll(() => wanted.isEnabled(), { timeout: 20_000 }).toBe(true)
  for (let i = 0; i < 120; i++) {
    if (await wanted.evaluate((element) => element.matches(':focus'))) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${name}`)
}
