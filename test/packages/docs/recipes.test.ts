// Release: runs nginx.
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { startNginx } from '../../support/nginx.js'
import { fencesOf } from './markdown.js'

const RECIPES = readFileSync(new URL('../../../docs/recipes-networks.md', import.meta.url), 'utf8')
const SETTINGS = fencesOf(RECIPES).find(({ language }) => language === 'nginx')?.text ?? ''

/** Behind nginx: responds with the addresses that nginx passes on. */
let server: Server

beforeAll(async () => {
  server = createServer((request, response) => response.end(String(request.headers['x-forwarded-for'])))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(() => server.close())

/** The address that the server gets of a client here that claims to be another one. */
async function addressOf(settings: string): Promise<string> {
  const port = await freePort()
  const http = settings
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
    .replace('127.0.0.1:3000', `127.0.0.1:${(server.address() as AddressInfo).port}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  const all = `daemon off; pid nginx.pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')}\n${http}\n}`
  const nginx = await startNginx(all, port)
  try {
    const headers = { 'CF-Connecting-IP': '203.0.113.9', 'X-Forwarded-For': '198.51.100.7' }
    return await (await fetch(`http://127.0.0.1:${port}/`, { headers })).text()
  } finally {
    await nginx.stop()
  }
}

test('the recipe behind Cloudflare believes Cloudflare alone: a client that connects to nginx itself has its own address', async () => {
  expect(await addressOf(SETTINGS)).toBe('127.0.0.1')
})

test('the recipe behind Cloudflare passes on the address that Cloudflare saw, and no claim of the client', async () => {
  const here = SETTINGS.replace('173.245.48.0/20', '127.0.0.1')
  expect(here).not.toBe(SETTINGS)
  expect(await addressOf(here)).toBe('203.0.113.9')
})
