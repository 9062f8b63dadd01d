// Deep: needs a browser. Runs alone: it watches every decision of its process.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { byUser, createLimiter, memoryStore } from '@sluice/core'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { HOSTILE } from '../../simulate/hostile-texts.js'
import { consoleBrowser, find, PICTURES, settled, show } from './browser.js'
import { servedStore } from './served.js'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOKS = [360, 1280].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)

const { open, opened } = consoleBrowser()

/** A service whose users have these names, by their numbers. All are refused, and the first one is blocked. */
async function served(names: readonly string[]) {
  const store = memoryStore({ offenders: true })
  const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h', key: byUser((user: string) => user) })
  const nameOf = async ({ kind, value }: { kind: string; value: string }) =>
    kind === 'user' ? names[Number(value)] : undefined
  const { url, close } = await servedStore(store, { limiters: [mail], traffic: true, nameOf })
  open.push(close)
  for (const n of names.keys()) for (let i = 0; i < 3; i++) await mail.consume(String(n))
  // The newest refusal, so that it is shown before those of all others.
  await sleep(5)
  await mail.consume('0')
  await store.blocks.add({ user: '0' }, { for: '1h' })
  return url
}

/** Shows each page with clients, until the name of the first one stands on it. */
async function eachPage(page: Page, name: string | RegExp, check: (of: string) => Promise<unknown>): Promise<void> {
  for (const of of ['overview', 'traffic', 'offenders', 'near', 'blocks'] as const) {
    await show(page, of)
    if (of === 'near') await page.getByText(/limits used up/).click()
    await page.locator('main .identity').filter({ hasText: name }).first().waitFor()
    await check(of)
  }
  await find(page, 'user', '0', /refused now/)
  await settled(page)
  await page.getByRole('heading', { level: 1 }).filter({ hasText: name }).waitFor()
  await check('client')
}

test.each(LOOKS)(
  'names stand beside clients on every page, which fits and passes axe: $width px, $colorScheme',
  async (look) => {
    const url = await served(['Ann Lee', 'x'.repeat(200), 'Bo'])
    const { page, complaints } = await opened(url, 'ann', look)
    await page.evaluate(readFileSync(AXE, 'utf8'))
    await eachPage(page, /user 0 Ann Lee/, async (of) => {
      await page.screenshot({
        path: join(PICTURES, `names-${of}-${look.width}-${look.colorScheme}.png`),
        fullPage: true,
      })
      expect(await page.evaluate('document.documentElement.scrollWidth'), of).toBe(look.width)
      const overlaps =
        '[...document.querySelectorAll("main td")].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length'
      expect(await page.evaluate(overlaps), of).toBe(0)
      const { violations } = (await page.evaluate(
        'axe.run({ preload: false, rules: { region: { enabled: true } } })',
      )) as AxeResults
      expect(violations.map(({ id, nodes }) => `${of}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
    })
    expect(complaints).toEqual([])
  },
)

test('a name is in no address, no storage and no state of the history, and hostile names stay text', async () => {
  const names = [`Ann ${HOSTILE[0]}`, ...HOSTILE]
  const url = await served(names)
  const { page, complaints } = await opened(url, 'ann')
  await eachPage(page, /Ann <script>/, async (of) => {
    expect(page.url()).not.toContain('Ann')
    const kept =
      'JSON.stringify([history.state, { ...localStorage }, { ...sessionStorage }, document.cookie, document.title])'
    expect(await page.evaluate(kept)).not.toContain('Ann')
    const markup = 'main :is(img, script, style, svg[onload], [onerror], [onmouseover])'
    expect(await page.locator(markup).count(), of).toBe(0)
  })
  expect(await page.title()).toBe('Client · Sluice console')
  expect(complaints).toEqual([])
})

test('a name that comes too late is asked for again', async () => {
  const store = memoryStore()
  const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h', key: byUser((user: string) => user) })
  let calls = 0
  const nameOf = () => (calls++ === 0 ? new Promise<string>(() => {}) : 'Ann Lee')
  const { url, close } = await servedStore(store, { limiters: [mail], nameOf })
  open.push(close)
  await store.blocks.add({ user: '42' }, { for: '1h' })
  const { page, complaints } = await opened(`${url}/#/blocks`, 'ann')
  await page.locator('main .identity').filter({ hasText: 'user 42 Ann Lee' }).first().waitFor()
  expect(complaints).toEqual([])
})
