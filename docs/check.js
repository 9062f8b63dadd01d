// Checks the built site in a real browser: `npm run docs:check`. With a folder as an argument (`node docs/check.js
// folder`) it also keeps pictures of every page there.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { chromiumPath } from '../scripts/programs.js'
import { brokenRules } from './accessibility.js'
import { SEARCHES } from './searches.js'

const DIST = fileURLToPath(new URL('.vitepress/dist/', import.meta.url))
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
  '.webp': 'image/webp',
}
const WIDTHS = [360, 1280]
const TABS = 4

const pictures = process.argv[2]
const problems = []
const executablePath = chromiumPath()
if (!executablePath) throw new Error('no Chromium: node scripts/programs.js chromium, or set CHROMIUM')
if (!existsSync(join(DIST, 'index.html'))) throw new Error('no site: npm run docs:build')
if (pictures) mkdirSync(pictures, { recursive: true })

/** The file of a URL, as a static host with clean URLs finds it. */
function fileOf(path) {
  const names = [path, `${path}.html`, join(path, 'index.html')].map((name) => join(DIST, name))
  return names.find((name) => existsSync(name) && statSync(name).isFile())
}

const server = createServer((request, response) => {
  const file = fileOf(decodeURIComponent(new URL(request.url, 'http://site').pathname))
  response.writeHead(file ? 200 : 404, { 'content-type': TYPES[extname(file ?? '')] ?? 'application/octet-stream' })
  response.end(file && readFileSync(file))
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${server.address().port}`

const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.html') && name !== '404.html')
  .map((name) => ({
    path: `/${name.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')}`,
    movedTo: /http-equiv="refresh" content="0; url=([^"]+)"/.exec(readFileSync(join(DIST, name), 'utf8'))?.[1],
  }))
/** The pages, without those that only say where a page has moved. */
const paths = files
  .filter(({ movedTo }) => movedTo === undefined)
  .map(({ path }) => path)
  .sort()

/** Bytes of the site, and of its reference of the API: pages, and the same as modules. */
const sizes = { all: 0, api: 0 }
for (const name of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
  const { size } = statSync(join(DIST, name))
  sizes.all += size
  if (/^(api\/|assets\/api_)/.test(name)) sizes.api += size
}
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
let at = 'site'
const problem = (what, where = at) => problems.push(`${where}: ${what}`)
if (sizes.all > 30e6) problem(`the site has ${megabytes(sizes.all)}, of at most 30`)
if (sizes.api > 20e6) problem(`the reference of the API has ${megabytes(sizes.api)}, of at most 20`)

/** A tab whose faults are problems of the page that it shows. */
async function openTab(options = {}) {
  const tab = await (await browser.newContext(options)).newPage()
  const fault = (what) => problem(what, tab.url().slice(origin.length))
  tab.on('console', (message) => message.type() === 'error' && fault(`console: ${message.text()}`))
  tab.on('pageerror', (error) => fault(`error: ${error.message}`))
  tab.on('request', (request) => {
    if (request.url().startsWith('http') && !request.url().startsWith(origin)) fault(`asks ${request.url()}`)
  })
  tab.on('response', (response) => response.status() >= 400 && fault(`${response.status()} for ${response.url()}`))
  return tab
}

/** Links within the site, by the page that they are on; and the anchors of each page. */
const links = []
const anchors = new Map()

const isApi = (path) => path.startsWith('/api/')

async function visit(tab, path, widths) {
  await tab.setViewportSize({ width: widths[0], height: 800 })
  await tab.goto(origin + path, { waitUntil: 'load' })
  await tab.waitForSelector('.VPDoc, .VPHome')
  for (const width of widths) {
    await tab.setViewportSize({ width, height: 800 })
    const over = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (over > 0) problem(`${over} px too wide at ${width} px`, path)
    const broken = await tab.evaluate(
      () => [...document.querySelectorAll('.vp-doc p')].filter((p) => /^\|.*\|$/s.test(p.textContent.trim())).length,
    )
    if (broken > 0) problem(`${broken} rows of tables shown as text`, path)
    if (pictures && !path.startsWith('/api/')) {
      await tab.screenshot({ path: join(pictures, `${path.replaceAll('/', '_')}-${width}.png`), fullPage: true })
    }
  }
  const found = await tab.evaluate(() => ({
    hrefs: [...document.querySelectorAll('a[href]')].map((a) => a.href),
    ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
    place: document.querySelector('.VPSidebar a:has(.is-here)')?.href,
  }))
  if (isApi(path) && path !== '/api/' && !(found.place && tab.url().startsWith(found.place)))
    problem(`the sidebar marks ${found.place ?? 'nothing'}`, path)
  anchors.set(path, new Set(found.ids))
  for (const href of new Set(found.hrefs)) links.push({ path, href })
}

/** Several tabs take the next path of the queue, each its own. */
const visitAll = (queue, widths, options) =>
  Promise.all(
    Array.from({ length: TABS }, async () => {
      const tab = await openTab(options)
      for (let path = queue.pop(); path !== undefined; path = queue.pop()) await visit(tab, path, widths)
      await tab.close()
    }),
  )

await visitAll(
  paths.filter((path) => !isApi(path)),
  WIDTHS,
)
// There are many pages of the API, all of one make: the narrow width will do, and no scripts.
await visitAll(paths.filter(isApi), WIDTHS.slice(0, 1), { javaScriptEnabled: false })
for (const { path, href } of links) {
  at = path
  const url = new URL(href)
  if (url.origin !== origin) continue
  const ids = anchors.get(url.pathname)
  if (!ids) problem(`dead link to ${url.pathname}`)
  else if (url.hash && !ids.has(decodeURIComponent(url.hash.slice(1))))
    problem(`dead anchor ${url.pathname}${url.hash}`)
}

for (const { path, movedTo } of files) {
  if (movedTo === undefined) continue
  at = path
  const [page, anchor] = movedTo.split('#')
  const ids = anchors.get(page)
  if (!ids) problem(`has moved to ${page}, which is no page`)
  else if (anchor && !ids.has(anchor)) problem(`has moved to the dead anchor ${movedTo}`)
}

at = 'assistants'
const index = existsSync(join(DIST, 'llms.txt')) ? readFileSync(join(DIST, 'llms.txt'), 'utf8') : ''
for (const path of paths.filter((each) => !isApi(each) && each !== '/')) {
  if (!existsSync(join(DIST, `${path}.md`))) problem(`no Markdown of ${path}`)
  if (!index.includes(`](${path}.md)`)) problem(`llms.txt has no link to ${path}`)
}

at = 'home'
const page = await openTab()
for (const width of WIDTHS) {
  await page.setViewportSize({ width, height: 800 })
  await page.goto(origin)
  const bottom = await page.$eval('.first-screen .language-http', (refusal) => refusal.getBoundingClientRect().bottom)
  if (bottom > 800) problem(`the refusal ends at ${bottom} px, below the first screen at ${width} px`)
}

at = 'axe'
for (const rule of await brokenRules(browser, origin)) problem(rule)

at = 'search'
await page.goto(`${origin}/express`)
// A key that comes before the page is hydrated opens nothing.
for (let tries = 0; tries < 100 && !(await page.isVisible('.VPLocalSearchBox input')); tries++) {
  await page.keyboard.press('Control+k')
  await page.waitForTimeout(200)
}
for (const [words, expected] of Object.entries(SEARCHES)) {
  await page.fill('.VPLocalSearchBox input', '')
  await page.waitForSelector('.VPLocalSearchBox .result', { state: 'detached' })
  await page.fill('.VPLocalSearchBox input', words)
  const found = await page
    .waitForSelector('.VPLocalSearchBox .result', { timeout: 20_000 })
    .then((result) => result.getAttribute('href'))
    .catch(() => undefined)
  const [path] = found?.split('#') ?? []
  if (expected.endsWith('/') ? !path?.startsWith(expected) : path !== expected)
    problem(`“${words}” finds ${found ?? 'nothing'} first, not ${expected}`)
}
if (pictures) await page.screenshot({ path: join(pictures, 'search.png') })

at = 'dark mode'
await page.goto(`${origin}/express`)
await page.click('.VPNavBar .VPSwitchAppearance')
if (!(await page.evaluate(() => document.documentElement.classList.contains('dark')))) problem('does not switch')
if (pictures) await page.screenshot({ path: join(pictures, 'dark.png') })

await browser.close()
server.close()
for (const line of new Set(problems)) console.error(line)
console.log(
  `${paths.length} pages of ${megabytes(sizes.all)}, ${links.length} links, ${Object.keys(SEARCHES).length} searches, ` +
    `${new Set(problems).size} problems`,
)
process.exitCode = problems.length > 0 ? 1 : 0
