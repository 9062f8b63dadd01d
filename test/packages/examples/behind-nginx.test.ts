// Release: runs examples.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { getFrom, type Nginx, startNginx } from '../../support/nginx.js'
import type { Program } from './program.js'
import { startOnPorts } from './programs.js'

const SETTINGS = readFileSync(new URL('../../../examples/behind-nginx/nginx.conf', import.meta.url), 'utf8')

/** How nginx passes the client's address to the apps: as in the example, or appended to the client's own claim. */
const WAYS = {
  'nginx replaces X-Forwarded-For': '$remote_addr',
  'nginx appends to X-Forwarded-For': '$proxy_add_x_forwarded_for',
}

describe.each(Object.entries(WAYS))('%s', (_way, forwarded) => {
  let program: Program
  let nginx: Nginx
  let front: number
  let proxied: number

  beforeAll(async () => {
    const started = await startOnPorts('behind-nginx/app.js')
    program = started.program
    front = await freePort()
    proxied = await freePort()
    const listen = [
      `listen 127.0.0.1:${front};`,
      // nginx takes the address from the PROXY protocol as the client's.
      `listen 127.0.0.1:${proxied} proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;`,
    ]
    const replacements: [string, string][] = [
      ['listen 127.0.0.1:8080;', listen.join('\n')],
      ['X-Forwarded-For $remote_addr;', `X-Forwarded-For ${forwarded};`],
      ...[0, 1, 2].map((i): [string, string] => [`127.0.0.1:${3000 + i}/`, `127.0.0.1:${started.port + i}/`]),
    ]
    let settings = SETTINGS
    for (const [from, to] of replacements) {
      expect(settings.split(from)).toHaveLength(2)
      settings = settings.replace(from, () => to)
    }
    nginx = await startNginx(settings, front)
  })
  afterAll(async () => {
    await nginx?.stop()
    expect(await program?.end('SIGTERM')).toBe(0)
  })

  describe.each(['express', 'koa', 'fastify'])('%s', (server) => {
    test('the example behind nginx counts the client that nginx saw', async () => {
      const get = (address: string) => getFrom(address, proxied, `/${server}/`)
      const first = await get('203.0.113.7')
      expect(first).toMatchObject({ status: 200, body: JSON.stringify({ server, ip: '203.0.113.7' }) })
      expect(first.head).toMatch(/^ratelimit: "default";r=2;t=10\r?$/im)
      expect([(await get('203.0.113.7')).status, (await get('203.0.113.7')).status]).toEqual([200, 200])
      const refused = await get('203.0.113.7')
      expect(refused.status).toBe(429)
      expect(refused.head).toMatch(/^retry-after: \d+\r?$/im)
      expect(await get('203.0.113.8')).toMatchObject({
        status: 200,
        body: JSON.stringify({ server, ip: '203.0.113.8' }),
      })
    })

    test.each([
      ['198.51.100.1', 'X-Forwarded-For: 192.0.2.1'],
      ['198.51.100.2', 'X-Forwarded-For: 192.0.2.1, 127.0.0.1'],
      ['198.51.100.3', 'X-Forwarded-For: 127.0.0.1'],
      ['198.51.100.4', 'X-Real-IP: 192.0.2.1'],
      ['198.51.100.5', 'Forwarded: for=192.0.2.1'],
    ])('the example behind nginx counts %s in spite of a forged %s', async (address, forged) => {
      const get = () => getFrom(address, proxied, `/${server}/`, [forged])
      for (let n = 0; n < 3; n++) {
        expect(await get()).toMatchObject({ status: 200, body: JSON.stringify({ server, ip: address }) })
      }
      expect((await get()).status).toBe(429)
    })
  })
})

test('the curl lines of the example behind nginx do what its comment says, without forgery by local clients', async () => {
  const { program, port } = await startOnPorts('behind-nginx/app.js')
  const front = await freePort()
  let settings = SETTINGS.replace('127.0.0.1:8080', `127.0.0.1:${front}`)
  for (const i of [0, 1, 2]) settings = settings.replace(`127.0.0.1:${3000 + i}/`, `127.0.0.1:${port + i}/`)
  const nginx = await startNginx(settings, front)
  try {
    for (const server of ['express', 'koa', 'fastify']) {
      const url = `http://127.0.0.1:${front}/${server}/`
      const statuses: number[] = []
      for (let n = 0; n < 4; n++) statuses.push((await fetch(url)).status)
      statuses.push((await fetch(url, { headers: { 'X-Forwarded-For': '203.0.113.9' } })).status)
      expect(statuses).toEqual([200, 200, 200, 429, 429])
    }
  } finally {
    await nginx.stop()
  }
  expect(await program.end('SIGTERM')).toBe(0)
})
