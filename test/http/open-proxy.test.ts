import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress, { type Express } from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'

const LIMIT = { limit: 100, window: '1m' } as const

/** Sends three requests through an app of these settings, which limits by address, or all as one. */
type Send = (settings: object, asOne?: boolean, more?: object) => Promise<void>

const byServer = async (listen: () => { address(): AddressInfo | string | null; close(): unknown }) => {
  const server = listen()
  await once(server as never, 'listening')
  for (let n = 0; n < 3; n++) {
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers: { connection: 'close' } })
  }
  server.close()
}

const throughExpress =
  (make: () => Express): Send =>
  (settings, asOne, more) => {
    const app = make()
    for (const [name, value] of Object.entries(settings)) app.set(name, value)
    app.use(express.rateLimit({ ...LIMIT, ...(asOne && { key: express.everyone() }), ...more }))
    return byServer(() => app.listen(0, '127.0.0.1'))
  }

const throughKoa: Send = (settings, asOne, more) => {
  const app = Object.assign(new Koa(), settings)
  app.use(koa.rateLimit({ ...LIMIT, ...(asOne && { key: express.everyone() }), ...more }))
  app.use((ctx) => {
    ctx.body = 'done'
  })
  return byServer(() => app.listen(0, '127.0.0.1'))
}

const throughFastify: Send = async (settings, asOne, more) => {
  const app = makeFastify(settings)
  await app.register(fastify.rateLimit, { ...LIMIT, ...(asOne && { key: express.everyone() }), ...more })
  // A child shares the server, and so the warning.
  await app.register(async (child) => {
    child.get('/', async () => 'done')
  })
  for (let n = 0; n < 3; n++) await app.inject({ url: '/', remoteAddress: '203.0.113.9' })
  await app.close()
}

const CASES: Record<string, { send: Send; open: object; closed: object[]; says: RegExp }> = {
  'Express 5': {
    send: throughExpress(makeExpress),
    open: { 'trust proxy': true },
    closed: [{}, { 'trust proxy': 1 }, { 'trust proxy': 'loopback' }, { 'trust proxy': false }],
    says: /^app\.set\('trust proxy', true\) trusts X-Forwarded-For from everyone/,
  },
  'Express 4': {
    send: throughExpress(makeExpress4),
    open: { 'trust proxy': true },
    closed: [{}, { 'trust proxy': 1 }],
    says: /^app\.set\('trust proxy', true\) trusts/,
  },
  Koa: {
    send: throughKoa,
    open: { proxy: true },
    closed: [{}, { proxy: true, maxIpsCount: 1 }, { maxIpsCount: 0 }],
    says: /^app\.proxy without maxIpsCount trusts/,
  },
  Fastify: {
    send: throughFastify,
    open: { trustProxy: true },
    closed: [{}, { trustProxy: 1 }, { trustProxy: '127.0.0.1' }, { trustProxy: ['10.0.0.0/8', 'loopback'] }],
    // Not "or how many there are", as elsewhere: Fastify trusts no proxy then.
    says: /^trustProxy: true trusts .*; name your proxies$/,
  },
}

describe.each(Object.entries(CASES))('%s', (_name, { send, open, closed, says }) => {
  const warnings: Error[] = []
  const listen = (warning: Error) => {
    if ((warning as { code?: string }).code === 'SLUICE_OPEN_PROXY') warnings.push(warning)
  }
  beforeEach(() => {
    warnings.length = 0
    process.on('warning', listen)
  })
  afterEach(() => {
    process.removeListener('warning', listen)
  })

  test('warns once per app of a proxy setting that lets anyone choose an address', async () => {
    await send(open)
    await send(open)
    expect(warnings.map(({ name, message }) => [name, says.test(message)])).toEqual([
      ['SluiceWarning', true],
      ['SluiceWarning', true],
    ])
  })

  test('no address is banned that anyone could choose, and the process says so once', async () => {
    const ban = { after: 1, within: '1m', for: ['1h'], private: true }
    const reasons: (string | undefined)[] = []
    const onVerdict = (_: unknown, { reason }: express.Verdict) => void reasons.push(reason)
    const more = { limit: 1, ban, onVerdict }
    const told = await warningsDuring(() => send(open, false, more))
    expect(reasons).toEqual([undefined, 'limited', 'limited'])
    const codes = told.map((warning) => (warning as NodeJS.ErrnoException).code)
    expect(codes.filter((code) => code === 'SLUICE_BAN_OPEN_PROXY')).toHaveLength(1)
    reasons.length = 0
    expect(await warningsDuring(() => send(closed[0] as object, false, more))).toEqual([])
    expect(reasons).toEqual([undefined, 'banned', 'banned'])
  })

  test('says nothing where proxies are named or counted, nor where no limit goes by address', async () => {
    for (const settings of closed) await send(settings)
    await send(open, true)
    expect(warnings).toEqual([])
  })
})
