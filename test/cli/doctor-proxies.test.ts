// Release: runs gateways.
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { startCaddy, startHaproxy } from '../support/gateways.js'
import { startNginx } from '../support/nginx.js'
import { examinedProxies, sluice } from './support.js'

const open = closedAfterEach()
const MARKER = /^192\.0\.2\.\d+$/

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(async () => void server.close())
  return (server.address() as AddressInfo).port
}

/** An application with the route of docs/behind-your-host.md, which trusts so many proxies. */
const APPS = {
  express: async (number: number) => {
    const app = express().set('trust proxy', number)
    app.get('/ip', (req, res) => void res.json({ ip: req.ip, chain: req.get('x-forwarded-for') ?? '' }))
    return portOf(createServer(app))
  },
  koa: async (number: number) => {
    const app = new Koa(number > 0 ? { proxy: true, maxIpsCount: number } : {})
    app.use((ctx) => {
      ctx.body = { ip: ctx.ip, chain: ctx.get('x-forwarded-for') }
    })
    return portOf(createServer(app.callback()))
  },
  fastify: async (number: number) => {
    const app = fastify({ trustProxy: (_address, hop) => hop < number })
    app.get('/ip', async ({ ip, headers }) => ({ ip, chain: String(headers['x-forwarded-for'] ?? '') }))
    await app.ready()
    return portOf(app.server)
  },
}

/** Proxies of real servers in front of a port. */
const PROXIES = {
  async nginx(to: number, header = '$proxy_add_x_forwarded_for') {
    const port = await freePort()
    const started = await startNginx(
      `daemon off; pid nginx.pid; error_log stderr; events {} http { access_log off; client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${to}; ${header && `proxy_set_header X-Forwarded-For ${header};`} } } }`,
      port,
    )
    open.push(() => started.stop())
    return port
  },
  async haproxy(to: number) {
    const port = await freePort()
    const settings = `defaults
  mode http
  timeout connect 10s
  timeout client 30s
  timeout server 30s
frontend clients
  bind 127.0.0.1:${port}
  option forwardfor
  default_backend app
backend app
  server app 127.0.0.1:${to}
`
    const started = await startHaproxy(settings, port)
    open.push(() => started.stop())
    return port
  },
  async caddy(to: number) {
    const port = await freePort()
    const started = await startCaddy(
      `{\n  admin off\n}\nhttp://127.0.0.1:${port} {\n  reverse_proxy 127.0.0.1:${to}\n}\n`,
      port,
    )
    open.push(() => started.stop())
    return port
  },
}

describe('doctor: proxies', () => {
  test.each(['express', 'koa', 'fastify'] as const)(
    'doctor counts nginx behind HAProxy as two proxies, which %s has to trust',
    async (framework) => {
      const front = async (number: number) => PROXIES.haproxy(await PROXIES.nginx(await APPS[framework](number)))
      const right = await examinedProxies(await front(2))
      expect(right).toMatchObject({ code: 0, status: 'ok', kind: 'proxies' })
      expect(right.of('chain')[0]?.data).toEqual({ proxies: 2, isKept: true })
      expect(right.of('address')[0]?.data).toEqual({ ip: '127.0.0.1', expected: '127.0.0.1' })

      const tooMany = await examinedProxies(await front(3))
      expect(tooMany.code).toBe(2)
      expect(tooMany.of('address')[0]).toMatchObject({
        severity: 'error',
        message: expect.stringContaining('any client can choose its address'),
        advice: expect.stringContaining("Trust 2 proxies: app.set('trust proxy', 2)"),
        data: { ip: expect.stringMatching(MARKER) },
      })
    },
  )

  test.each(Object.entries(PROXIES))('doctor counts one proxy where %s is in front', async (name, start) => {
    const report = await examinedProxies(await start(await APPS.express(1)))
    expect(report.problems).toEqual([])
    // Caddy replaces what the client sent.
    expect(report.of('chain')[0]?.data).toEqual({ proxies: 1, isKept: name !== 'caddy' })
  })

  test('doctor reports an application that trusts no proxy, though one of another address is in front', async () => {
    const app = createServer((_request, response) =>
      response.end(JSON.stringify({ ip: '10.0.0.7', chain: '203.0.113.5:1234' })),
    )
    const report = await examinedProxies(await portOf(app))
    expect(report.of('address')[0]).toMatchObject({
      severity: 'error',
      message: expect.stringContaining('10.0.0.7, not 203.0.113.5. All clients share one limit'),
      advice: expect.stringContaining('Trust 1 proxy:'),
    })
  })

  test('doctor reports an application that believes the client where no proxy is in front', async () => {
    const trusting = await examinedProxies(await APPS.express(1))
    expect(trusting.of('address')[0]).toMatchObject({
      severity: 'error',
      advice: expect.stringMatching(/^Trust no proxy/),
    })
    expect((await examinedProxies(await APPS.express(0))).problems).toEqual([])
  })

  test('doctor reports nginx that passes the field of the client as it is', async () => {
    const report = await examinedProxies(await PROXIES.nginx(await APPS.express(1), ''))
    expect(report.of('chain')[0]?.data).toEqual({ proxies: 0, isKept: true })
    expect(report.of('address')[0]).toMatchObject({
      severity: 'error',
      advice: expect.stringMatching(/^Trust no proxy/),
    })
  })

  test('doctor reports a proxy that adds to the first of two fields alone', async () => {
    const fieldsOf = ({ rawHeaders }: IncomingMessage) =>
      rawHeaders.flatMap((name, i) => (i % 2 === 0 && /^x-forwarded-for$/i.test(name) ? [rawHeaders[i + 1]] : []))
    const app = createServer((request, response) => {
      const [first, ...others] = fieldsOf(request)
      response.end(JSON.stringify({ ip: '203.0.113.5', chain: [`${first}, 203.0.113.5`, ...others].join(', ') }))
    })
    const report = await examinedProxies(await portOf(app))
    expect(report.code).toBe(2)
    expect(report.of('fields')[0]?.data).toEqual({ left: 0, number: 1 })
  })

  test('doctor says what is missing where the address is no such route', async () => {
    const app = createServer((_request, response) => response.writeHead(404).end('no'))
    const port = await portOf(app)
    const report = await examinedProxies(port)
    expect(report.of('route')[0]?.message).toContain('expected JSON with ip and chain, got a response with status 404')
    const printed = await sluice(['doctor', '--url', `http://127.0.0.1:${port}/ip`])
    expect(printed.stdout).toMatch(new RegExp(`^Proxies before http://127.0.0.1:${port}/ip\n`))
    const closed = await examinedProxies(await freePort())
    expect(closed.of('route')[0]?.message).toContain('ECONNREFUSED')
  })
})
