import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { memoryStore } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { APPS, ask, asOperator, authorize, portOf, type StartApp } from './support.js'

/** Bytes of the whole page, as it is sent to browsers, and without compression. */
const MAX_SENT = 80_000
const MAX_PLAIN = 200_000
const FILES = ['', 'app.js', 'app.css', 'icon.svg']
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// The page is in the build alone.
beforeAll(() => ensureBuilt('core', 'console'))

const open = closedAfterEach()

async function served(start: StartApp) {
  const server: Server = await start({ store: memoryStore(), authorize })
  open.push(() => new Promise((resolve) => server.close(resolve)))
  const port = portOf(server)
  return (path: string, headers: Record<string, string> = {}) =>
    ask(port, path, { headers: { ...asOperator(port), ...headers } })
}

describe.each(Object.entries(APPS))('the page with %s', (framework, start) => {
  test('is served with its policy, for no other site, and is asked about each time', async () => {
    const get = await served(start)
    for (const file of FILES) {
      const { status, headers, text } = await get(`/sluice/${file}`)
      expect([status, text === '']).toEqual([200, false])
      expect(headers).toMatchObject({
        'content-security-policy': POLICY,
        'cache-control': 'no-cache, no-transform',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        vary: 'Accept-Encoding',
      })
      const again = await get(`/sluice/${file}`, { 'if-none-match': `"other", ${headers.etag}` })
      expect([again.status, again.text]).toEqual([304, ''])
      expect((await get(`/sluice/${file}`, { 'if-none-match': '"other"' })).status).toBe(200)
    }
    const type = async (file: string) => (await get(`/sluice/${file}`)).headers['content-type']
    expect(await Promise.all(FILES.map(type))).toEqual([
      'text/html; charset=utf-8',
      'text/javascript; charset=utf-8',
      'text/css; charset=utf-8',
      'image/svg+xml',
    ])
  })

  test('has addresses below its own, which ends in a slash', async () => {
    const get = await served(start)
    // With node:http it is at the root of a server.
    if (framework !== 'node:http') {
      const { status, headers } = await get('/sluice?x=1')
      expect([status, headers.location]).toEqual([308, './sluice/'])
    }
    const { text } = await get('/sluice/')
    for (const [, address] of text.matchAll(/(?:src|href)="([^"]*)"/g)) expect(address).toMatch(/^[\w.]+$/)
    expect(text).not.toMatch(/<script(?! src=)|<style| on\w+=/)
  })
})

const start = APPS.Koa as StartApp

test('the page is at most 80 kB, asks no other host, and is compressed for those who take it', async () => {
  const get = await served(start)
  let [sent, plain] = [0, 0]
  for (const file of FILES) {
    const whole = await get(`/sluice/${file}`)
    const small = await get(`/sluice/${file}`, { 'accept-encoding': 'br, gzip;q=0.5' })
    expect(small.headers['content-encoding']).toBe('gzip')
    sent += Number(small.headers['content-length'])
    plain += Number(whole.headers['content-length'])
    expect(whole.text).not.toMatch(/\b(https?:)?\/\/(?!www\.w3\.org\/)[a-z0-9-]+\.[a-z]/)
  }
  expect(sent).toBeLessThan(MAX_SENT)
  expect(plain).toBeLessThan(MAX_PLAIN)
  for (const accepted of ['identity', 'gzip;q=0', 'br', 'x-gzip-like']) {
    const { headers } = await get('/sluice/app.js', { 'accept-encoding': accepted })
    expect(headers['content-encoding']).toBeUndefined()
  }
})

test('what is sent compressed is the file', async () => {
  const server = await start({ store: memoryStore(), authorize })
  open.push(() => new Promise((resolve) => server.close(resolve)))
  const port = portOf(server)
  const plain = await ask(port, '/sluice/app.css', { headers: asOperator(port) })
  // `fetch` asks for a compressed response, and decompresses it.
  const response = await fetch(`http://127.0.0.1:${port}/sluice/app.css`, {
    headers: { authorization: 'ann', 'accept-encoding': 'gzip' },
  })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(await response.text()).toBe(plain.text)
})

test('the licences of what is in the page are in the package', () => {
  const dist = fileURLToPath(new URL('../../packages/console/dist/', import.meta.url))
  const notice = readFileSync(`${dist}NOTICE`, 'utf8')
  const app: string = JSON.parse(/= (\{.*\})\n$/s.exec(readFileSync(`${dist}page.cjs`, 'utf8'))?.[1] ?? '')['app.js']
  expect(app).toMatch(/^\/\* Licences of what is in here: NOTICE of @sluice\/console\. \*\//)
  for (const name of ['preact', 'uplot']) {
    const folder = fileURLToPath(new URL(`../../packages/console/node_modules/${name}/`, import.meta.url))
    const { version } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'))
    expect(notice).toContain(`${name} ${version} (MIT)\n\n${readFileSync(`${folder}LICENSE`, 'utf8').trim()}\n`)
  }
  expect(notice.match(/^\S+ \d+\.\d+\.\d+ \(/gm)).toHaveLength(2)
})
