// Deep: needs a browser.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AxeResults } from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { propose } from '../../../packages/simulate/src/propose.js'
import { pageOf } from '../../../packages/simulate/src/report/html/page.js'
import { chromiumPath } from '../../../scripts/programs.js'
import { trafficOf } from '../../simulate/generated-traffic.js'

/** Pictures for people to look at. */
const PICTURES = fileURLToPath(new URL('../../../.tmp/simulate-page/', import.meta.url))
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

let folder: string
let browser: Browser
beforeAll(async () => {
  const executablePath = chromiumPath()
  if (!executablePath) throw new Error('no Chromium: node scripts/programs.js chromium, or set CHROMIUM')
  folder = mkdtempSync(join(tmpdir(), 'sluice-proposal-'))
  mkdirSync(PICTURES, { recursive: true })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  const { lines, format } = trafficOf(1)
  const log = join(folder, 'access.log')
  writeFileSync(log, lines)
  writeFileSync(join(folder, 'report.html'), pageOf(await propose({ logs: [log], format })))
}, 300_000)
afterAll(async () => {
  await browser.close()
  rmSync(folder, { recursive: true })
})

async function opened(width: number, colorScheme: 'light' | 'dark'): Promise<Page> {
  const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } })
  await page.goto(String(pathToFileURL(join(folder, 'report.html'))))
  return page
}

test.each([
  [360, 'light'],
  [360, 'dark'],
  [1280, 'light'],
  [1280, 'dark'],
] as const)('a proposal fits and passes axe: %i px, %s', async (width, colorScheme) => {
  const page = await opened(width, colorScheme)
  await page.screenshot({ path: join(PICTURES, `proposal-${width}-${colorScheme}.png`), fullPage: true })
  await page.addInitScript({ path: AXE })
  await page.reload()
  await page.evaluate('document.querySelectorAll("details").forEach((details) => { details.open = true })')
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  const { violations } = (await page.evaluate('axe.run({ preload: false })')) as AxeResults
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
  await page.close()
})

/** SLUICE_PICTURE=1 writes the picture of docs/choosing-a-limit.md. */
test.runIf(process.env.SLUICE_PICTURE)('the documentation has a picture of the page', async () => {
  const page = await opened(1280, 'light')
  const png = await page.screenshot({ clip: { x: 0, y: 0, width: 1280, height: 780 } })
  // As text: types of a browser are not those of tests.
  const webp = await page.evaluate(`(async () => {
    const bytes = Uint8Array.from(atob('${png.toString('base64')}'), (each) => each.charCodeAt(0))
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
    const canvas = Object.assign(document.createElement('canvas'), { width: bitmap.width, height: bitmap.height })
    canvas.getContext('2d').drawImage(bitmap, 0, 0)
    return canvas.toDataURL('image/webp', 0.86).split(',')[1]
  })()`)
  writeFileSync(new URL('../../../docs/pictures/proposal.webp', import.meta.url), Buffer.from(String(webp), 'base64'))
  await page.close()
})

test('the limit moves by keys and by a click, with its line and its sentence', async () => {
  const page = await opened(360, 'light')
  const figure = page.locator('.movable').first()
  const shown = async () => ({
    sentence: await figure.locator('p:visible').allTextContents(),
    line: await figure.locator('figure .at:visible .mark').allTextContents(),
  })
  const before = await shown()
  expect(before.sentence).toHaveLength(1)
  expect(before.line).toHaveLength(1)
  await figure.locator('input:checked').focus()
  await page.keyboard.press('ArrowRight')
  const after = await shown()
  expect(after.line).toHaveLength(1)
  expect(after).not.toEqual(before)
  await figure.locator('label').first().click()
  expect((await shown()).sentence[0]).toMatch(/^A limit of \d+ alone refuses [\d,]+ of 3,052 clients/)
  await page.close()
})
