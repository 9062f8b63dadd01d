import { EventEmitter } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { byHeader, concurrency, createLimiter, fileList, list, perMinute, tokenBucket } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { failingStore } from '@sluice/testing'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { whilePolluted } from '../../support/polluted.js'

const some = { limit: 1, window: '1m' } as const
const none = () => undefined

test.each<[string, unknown, object]>([
  ['replacement', none, some],
  ['isCounted', true, some],
  ['SLUICE_NO_USER', false, some],
  ['estimate', 'always', { limits: [concurrency({ limit: 1 })] }],
  ['lease', { size: 9 }, { limits: [concurrency({ limit: 1 })] }],
  ['unit', 'response-bytes', { limits: [concurrency({ limit: 1 })] }],
  ['countRefusals', none, { ...some, onDeny: 'charge' }],
  ['widen', none, { limits: [tokenBucket({ refill: 1, every: '1m', unit: 'tokens' }), perMinute(1)] }],
])('a limiter that is made while Object.prototype has %s limits', async (name, value, options) => {
  await whilePolluted(name, value, async () => {
    const limiter = createLimiter<string>(options as never)
    expect((await limiter.consume('a')).allowed).toBe(true)
    expect((await limiter.consume('a')).reason).toBe('limited')
  })
})

test.each(['estimate', 'lease', 'unit'])('a limit of permits ignores %s of Object.prototype', async (name) => {
  const limit = await whilePolluted(name, 1, () => concurrency({ limit: 1 }))
  expect(limit).toMatchObject({ unit: 'concurrent-requests', estimate: undefined, lease: undefined })
})

test('a list that is made while Object.prototype has expiresAt lists', async () => {
  const allow = await whilePolluted('expiresAt', 1, () => list({ key: ['listed'] }))
  expect((await createLimiter({ ...some, limit: 0, allow }).consume('listed')).allowed).toBe(true)
})

test.each<[string, 'json' | 'crowdsec', unknown, string]>([
  ['expiresAt', 'json', 1, '[{ "value": "192.0.2.1" }]'],
  ['simulated', 'crowdsec', true, '[{ "scope": "Ip", "type": "ban", "value": "192.0.2.1", "duration": "4h" }]'],
])('a file of a list has no %s that Object.prototype has', async (name, format, value, text) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-polluted-'))
  await writeFile(join(folder, 'list'), text)
  const deny = fileList(join(folder, 'list'), { format })
  try {
    await whilePolluted(name, value, () => deny.ready())
    expect(deny.match({ kind: 'ip', value: '192.0.2.1' })).toBeDefined()
  } finally {
    await deny.close()
    await rm(folder, { recursive: true })
  }
})

test.each([
  ['clock', () => Number.NaN],
  ['maxKeys', 1],
  ['deny', 1],
  ['lastKnown', none],
])('an outage is decided by the limits while Object.prototype has %s', async (name, value) => {
  const store = failingStore()
  const limiter = createLimiter({ ...some, store })
  store.fail()
  await whilePolluted(name, value, async () => {
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, kind: 'unavailable' })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, kind: 'unavailable' })
  })
})

test('permits are released while Object.prototype has keepsCharges, whatever the adapter', async () => {
  const guard = createGuard({ key: byHeader('x-key'), limits: [concurrency({ limit: 1 })] })
  const headers = { 'x-key': 'a' }
  await whilePolluted('keepsCharges', true, async () => {
    const response = Object.assign(new EventEmitter(), { headersSent: true })
    expect(await guard(contextOf({ headers, response }))).toMatchObject({ proceed: true })
    expect(await guard(contextOf({ headers }))).toMatchObject({ proceed: false })
    response.emit('finish')
    expect(await guard(contextOf({ headers }))).toMatchObject({ proceed: true })
  })
})

test('a client without an address has left by the stream of HTTP/2 while Object.prototype has stream', async () => {
  const guard = createGuard({ limit: 1, window: '1m' })
  const response = Object.assign(new EventEmitter(), { headersSent: false, stream: { closed: true } })
  const context = { ...contextOf({ response }), ip: undefined }
  await whilePolluted('stream', undefined, async () => {
    expect(await guard(context)).toMatchObject({ proceed: false, reply: undefined })
  })
})
