// Deep: needs a browser.
import { readFileSync } from 'node:fs'
import { request as ask, createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { memoryStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import type { AxeResults } from 'axe-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { APPS, portOf, type StartApp } from '../../console/support.js'
import { HOSTILE } from '../../simulate/hostile-texts.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { consoleBrowser, find, PAGES, PICTURES, settled, show, tabTo } from './browser.js'
import { servedPage } from './served.js'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const LOOKS = [360, 1280].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)
const FRAMEWORKS = ['Express 5', 'Koa', 'Fastify'] as const
let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const { open, opened } = consoleBrowser()

async function served(framework: string, clients?: readonly string[]) {
  const page = await servedPage(APPS[framework] as StartApp, redis, clients)
  open.push(page.close)
  return page
}

test.each([360, 1280])('no label of a chart is cut in a window of %d pixels', async (width) => {
  const { url } = await served('Koa')
  const { page } = await opened(url, 'ann', { width })
  // Drawn again, with what is drawn beyond the edge of its canvas.
  await page.evaluate(`
    cut = []
    seen = 0
    const draw = CanvasRenderingContext2D.prototype.fillText
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const half = this.measureText(text).width / 2
      const at = this.getTransform().transformPoint({ x, y }).x
      seen++
      if (this.textAlign === 'center' && (at - half < 0 || at + half > this.canvas.width)) cut.push(text)
      return draw.apply(this, arguments)
    }`)
  for (const name of ['changes', 'overview'] as const) await show(page, name)
  await expect.poll(() => page.evaluate('seen'), { timeout: 10_000 }).toBeGreaterThan(10)
  expect(await page.evaluate('cut')).toEqual([])
})

test('documents without versions for the same reason share one sentence', async () => {
  const document = await policies.from({
    object: { version: 1, policies: { api: { limits: [{ limit: 5, window: '1h' }] } } },
  })
  const names = ['express', 'koa', 'fastify']
  const server = await (APPS.Koa as StartApp)({
    store: memoryStore(),
    policies: names.map((name) => ({ policies: document as never, name })),
    authorize: () => ({ name: 'ann', may: 'act' }),
  } as never)
  open.push(
    () => document.close(),
    () => new Promise((resolve) => server.close(resolve)),
    () => server.closeAllConnections(),
  )
  const { page } = await opened(`http://127.0.0.1:${portOf(server)}/sluice`, 'ann')
  await show(page, 'changes')
  await expect
    .poll(() => page.getByText(/has no versions here/).allTextContents())
    .toEqual([expect.stringMatching(/^express, koa, fastify: /)])
})

describe.each(FRAMEWORKS)('the page in %s', (framework) => {
  test('is served below its path, with its policy, and asks nobody else', async () => {
    const { url } = await served(framework)
    const { page, complaints } = await opened(url, 'ann')
    expect(new URL(page.url()).pathname).toBe('/sluice/')
    for (const name of PAGES) await show(page, name)
    expect(complaints).toEqual([])
  })

  test('does every action by keyboard alone', async () => {
    const { url } = await served(framework)
    const { page, complaints } = await opened(url, 'ann')
    const said = page.getByRole('status')
    const press = async (name: string) => {
      await tabTo(page, name)
      await page.keyboard.press('Enter')
    }
    /** Opens a dialog, leaves it by Escape, and does it the second time. */
    const act = async (name: string, submit: string, done: RegExp, fill?: () => Promise<void>) => {
      await press(name)
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
      await tabTo(page, name)
      await page.keyboard.press('Enter')
      await fill?.()
      await tabTo(page, submit, page.getByRole('dialog'))
      await page.keyboard.press('Enter')
      await expect.poll(() => said.textContent(), { timeout: 15_000 }).toMatch(done)
    }

    await press('Skip to the content')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
    await show(page, 'offenders')
    await act('Block', 'Block', /user ann is blocked/)
    await find(page, 'user', 'ann')
    await act('Let in now', 'Let in now', /ann is let in/)
    await page.getByText('would be admitted now').waitFor()
    await act('Reset', 'Reset', /user ann: all units are there again/)
    await act('Raise a limit', 'Apply', /has its own limit of api/)
    await act('Add to a list', 'Add', /is on abusers/, async () => {
      await page.getByRole('combobox', { name: 'List' }).focus()
      await page.keyboard.type('abusers')
    })
    await act('Block', 'Block', /user ann is blocked/, async () => {
      await page.getByRole('textbox', { name: 'Reason' }).focus()
      await page.keyboard.type('scraping')
    })
    await page.getByText('scraping').first().waitFor()
    await act('Unblock', 'Unblock', /is not blocked/)
    await act('Remove', 'Remove', /is not on/)
    await press('Search all keys')
    await page.locator('pre').filter({ hasText: 'blocks' }).waitFor()
    await act('Forget', 'Forget', /Everything about user ann is erased/, async () => {
      await page.getByRole('textbox', { name: /Type forget/ }).focus()
      await page.keyboard.type('forget')
    })

    await show(page, 'policies')
    await find(page, 'user', 'eve')
    await act('Raise a limit', 'Apply', /eve has its own limit/)
    await show(page, 'policies')
    await act('End', 'End override', /The override of user eve is ended/)
    await show(page, 'blocks')
    await act('Block a client', 'Block', /192.0.2.99 is blocked/, async () => {
      await page.getByRole('textbox', { name: 'Value' }).focus()
      await page.keyboard.type('192.0.2.99')
    })
    await act('Unblock', 'Unblock', /is not blocked/)
    await show(page, 'lists')
    await act('Add to a list', 'Add', /192.0.2.98 is on abusers/, async () => {
      await page.getByRole('textbox', { name: 'Value' }).focus()
      await page.keyboard.type('192.0.2.98')
    })
    await act('Remove', 'Remove', /is not on abusers/)
    await show(page, 'changes')
    await act('Roll back', 'Roll back', /Version 1 of api is in force again/)
    expect(complaints).toEqual([])
  })

  test('offers a reader no action', async () => {
    const { url } = await served(framework)
    const { page, complaints } = await opened(url, 'bob')
    for (const name of PAGES) {
      await show(page, name)
      // Those that choose what is shown change nothing.
      const buttons = page.locator('main button:not(.choose, .watch, .sort, .view)')
      expect(await buttons.allTextContents()).toEqual(name === 'client' ? ['Find'] : [])
    }
    await find(page, 'user', 'ann')
    expect(await page.locator('main button:not(.sort)').allTextContents()).toEqual(['Link', 'Search all keys'])
    expect(complaints).toEqual([])
  })
})

test.each(LOOKS)('every page fits and passes axe: $width px, $colorScheme', async (look) => {
  const { url } = await served('Express 5')
  const { page, complaints } = await opened(url, 'ann', look)
  const check = async (name: string) => {
    await page.screenshot({ path: join(PICTURES, `${name}-${look.width}-${look.colorScheme}.png`), fullPage: true })
    expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBe(look.width)
    // On a phone, no column is beyond an edge.
    if (look.width < 480) {
      const cut =
        '[...document.querySelectorAll(".table td")].filter((cell) => cell.scrollWidth > cell.clientWidth).length'
      expect(await page.evaluate(cut), name).toBe(0)
    }
    const { violations } = (await page.evaluate(
      'axe.run({ preload: false, rules: { region: { enabled: true } } })',
    )) as AxeResults
    expect(violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
  }
  // The policy of the page lets no script in; the debugger may.
  await page.evaluate(readFileSync(AXE, 'utf8'))
  for (const name of PAGES) {
    await show(page, name)
    await check(name)
  }
  await find(page, 'user', 'ann')
  await settled(page)
  await check('found')
  for (const action of ['Let in now', 'Raise a limit', 'Reset', 'Add to a list', 'Block', 'Forget']) {
    await page.getByRole('button', { name: action, exact: true }).click()
    await page.getByRole('dialog').waitFor()
    await check(`dialog-${action.toLowerCase().replaceAll(' ', '-')}`)
    await page.keyboard.press('Escape')
  }
  expect(complaints).toEqual([])
})

test('people who do not see the page find its parts by their names', async () => {
  const { url } = await served('Koa')
  const { page } = await opened(url, 'ann')
  // Processes report their figures once a second.
  await page.getByText(/half within/).waitFor()
  const trees: string[] = []
  const keep = async (name: string) => trees.push(`# ${name}\n${steady(await page.locator('body').ariaSnapshot())}`)
  for (const name of PAGES) {
    await show(page, name)
    await keep(name)
  }
  await find(page, 'user', 'ann')
  await settled(page)
  await keep('client ann')
  await expect(`${trees.join('\n\n')}\n`).toMatchFileSnapshot('accessibility-tree.txt')
})

/** Times and figures differ between two runs, and with them the sentences that depend on them. */
function steady(tree: string): string {
  return tree
    .replace(/"?> 1,000 ms"?/g, '5 ms')
    .replace(/half above 1,000 ms/g, 'half within 5 ms')
    .replace(/^ {2}- region "(?:Needs attention|What if a limit were lower)":\n(?: {4}.*\n)*/gm, '')
    .replace(/\b\d\d:\d\d(:\d\d)?( [AP]M)?\b/g, 'hh:mm:ss')
    .replace(/\b(?:[A-Z][a-z]{2} )?\d{1,2} [A-Z][a-z]{2}( \d{4})?, (?=hh)/g, '')
    .replace(/\b\d+(\.\d+)? (ms|s|min|h)( \d+ (s|min))?\b/g, 'n $2')
    .replace(/\b(decisions a (?:second|minute)|refused|decided alone) [\d.–]+/g, '$1 n')
    .replace(/\d+(\.\d+)? ?%/g, 'n %')
    .replace(/(cell|definition:) "[\d.]+"/g, '$1 "n"')
    .replace(/definition: a second, n %/g, 'definition: a second')
    .replace(/(row "mail mail )\d+/g, '$1n')
}

test('every text of a client stays text', async () => {
  // Control characters cannot be parts of a key.
  const texts = [...HOSTILE, '<b>bold</b>', '\u05e9\u05dc\u05d5\u05dd \u202e admin', 'a'.repeat(3000)]
  const { url } = await served('Express 5', texts)
  const { page, complaints } = await opened(url, 'ann', { width: 360 })
  for (const name of ['overview', 'blocks', 'lists', 'offenders'] as const) {
    await show(page, name)
    expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBe(360)
    expect(await page.evaluate('document.scripts.length + document.images.length + document.styleSheets.length')).toBe(
      3,
    )
    expect(await page.locator('main b, main i, main style, main script, main [onload], main [onerror]').count()).toBe(
      name === 'overview' ? await page.locator('.key b, .key i').count() : 0,
    )
  }
  for (const text of ['<script>document.title = "owned"</script>', "' onmouseover='document.title=1' x='"]) {
    await find(page, 'user', text)
    // The page of the client before may still be there.
    await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe(`user ${text}`)
  }
  expect(await page.title()).toBe('Client · Sluice console')
  expect(page.url()).toBe(`${url}/#/client`)
  expect(complaints).toEqual([])
})

describe('from the overview, three clicks or fewer answer', () => {
  async function walk() {
    const { url } = await served('Fastify')
    const { page } = await opened(url, 'ann')
    let clicks = 0
    const click = async (role: 'link' | 'button', name: string | RegExp) => {
      clicks++
      await page
        .getByRole(role, { name, exact: typeof name === 'string' })
        .first()
        .click()
    }
    return { page, click, clicks: () => clicks }
  }

  test('why was this client refused', async () => {
    const { page, click, clicks } = await walk()
    await click('link', 'user ann')
    await page.getByText('It is refused now.').waitFor()
    await page.getByText(/Blocked by mail until .*: because of ann/).waitFor()
    await page.getByRole('cell', { name: 'limit used up' }).waitFor()
    expect(clicks()).toBeLessThanOrEqual(3)
  })

  test('let it in now', async () => {
    const { page, click, clicks } = await walk()
    await click('link', 'user ann')
    await click('button', 'Let in now')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('ends the block of mail').waitFor()
    await dialog.getByRole('button', { name: 'Let in now' }).click()
    await page.getByText('would be admitted now').waitFor()
    expect(clicks() + 1).toBeLessThanOrEqual(3)
  })

  test("raise one client's limit until Friday", async () => {
    const { page, click, clicks } = await walk()
    await click('link', 'user ann')
    await click('button', 'Raise a limit')
    await page.getByText('50 per h becomes').waitFor()
    await click('button', 'Apply')
    await expect.poll(() => page.getByRole('status').textContent()).toMatch(/own limit/)
    const limits = page.getByRole('row', { name: /api/ }).filter({ hasText: '100 per h' })
    await limits.first().waitFor()
    expect(clicks()).toBeLessThanOrEqual(3)
  })

  test('who blocked this client, and what else did they do', async () => {
    const { page, click, clicks } = await walk()
    await click('link', 'Blocks and bans')
    await page.getByRole('row', { name: /user ann .* because of ann carol/ }).waitFor()
    await click('link', 'carol')
    await page.getByRole('row', { name: /carol blocked of mail user ann/ }).waitFor()
    expect(page.url()).toMatch(/#\/changes\?by=carol$/)
    await page.getByRole('combobox', { name: 'Action' }).selectOption('reset')
    await page.getByText('No change fits.').waitFor()
    expect(page.url()).toMatch(/by=carol&action=reset$/)
    await page.getByRole('combobox', { name: 'By' }).selectOption('everyone')
    await expect.poll(() => page.url()).toMatch(/#\/changes\?action=reset$/)
    expect(clicks()).toBeLessThanOrEqual(3)
  })

  test('did my change do harm', async () => {
    const { page, click, clicks } = await walk()
    await click('link', 'Changes')
    await page.getByRole('img', { name: /Decisions and refusals a minute/ }).waitFor()
    await page.getByRole('table').first().waitFor()
    expect(clicks()).toBeLessThanOrEqual(3)
  })
})

test('behind a proxy that serves it below another path, it works by relative addresses alone', async () => {
  const { server } = await served('Express 5')
  const to = portOf(server)
  const proxy = createServer((request, response) => {
    const path = (request.url ?? '').replace(/^\/ops\/tools/, '/sluice')
    // As proxies that keep the host.
    const forwarded = ask(
      { host: '127.0.0.1', port: to, path, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    forwarded.on('error', () => response.destroy())
    request.pipe(forwarded)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  open.push(
    () => proxy.close(),
    () => proxy.closeAllConnections(),
  )
  const { page, complaints } = await opened(`http://127.0.0.1:${portOf(proxy)}/ops/tools/`, 'ann')
  await show(page, 'blocks')
  await page.getByRole('table', { name: '' }).first().waitFor()
  expect(complaints).toEqual([])
})

test('an outage is a sentence with its beginning, and the state before it stays', async () => {
  const own = await startRedis()
  open.push(() => own.stop())
  const shown = await servedPage(APPS.Koa as StartApp, own)
  open.push(shown.close)
  const { page } = await opened(shown.url, 'ann')
  await show(page, 'overview')
  await page.getByRole('link', { name: 'user ann' }).first().waitFor()
  own.kill('SIGKILL')
  await page
    .getByText(/The store is away since/)
    .first()
    .waitFor({ timeout: 45_000 })
  expect(await page.getByRole('link', { name: 'user ann' }).count()).toBeGreaterThan(0)
  await show(page, 'blocks')
  await page
    .getByText(/The store is away since .* nothing can be read or changed/)
    .first()
    .waitFor({ timeout: 45_000 })
})

test('without a session, the page says so, and how to get one', async () => {
  const { url } = await served('Express 5')
  const { page } = await opened(url, 'mallory')
  await page.getByText('This request may not use the console.').waitFor()
  expect(await page.getByRole('navigation').count()).toBe(0)
})
