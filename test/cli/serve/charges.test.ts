import { expect, test } from 'vitest'
import { ask, type Decider, decide, documentOf, endWithTests, json, refused, serving, THREE } from './support.js'

endWithTests()

const TOKENS = documentOf(`
chat:
  key: user
  limits:
    - { limit: 3, window: 1h }
    - { algorithm: fixedWindow, unit: tokens, limit: 1000, window: 1h, name: tokens, estimate: cap }
    - { algorithm: concurrency, limit: 2, ttl: 1m }
tenant: { key: tenant, limits: [{ algorithm: fixedWindow, unit: tokens, limit: 5000, window: 1h }] }
listed: { match: { paths: [/free] }, allow: { ip: [192.0.2.7] }, limits: [{ limit: 1, window: 1h }] }`)

const chat = { path: '/', ip: '192.0.2.7', keys: { user: 'ann', tenant: 'acme' }, cost: { tokens: 400 } }

const change = (decider: Decider, path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(decider, {
    method: 'POST',
    path: `/v1/${path}`,
    headers: [['Content-Type', 'application/json'], ...Object.entries(headers)],
    body: JSON.stringify(body),
  })

async function left(decider: Decider) {
  const { json: decision } = await decide(decider, { ...chat, cost: 0 })
  return decision.limits.map(({ remaining }: { remaining: number }) => remaining)
}

test('callers settle, renew and release the charge of a decision by its id, in every policy that charged', async () => {
  const decider = await serving(json(TOKENS, '--key', 'user', '--key', 'tenant', '--charges', '1h'))
  const { json: decision } = await decide(decider, chat)
  expect(decision.id).toMatch(/^[\w.-]{22,}$/)
  expect(JSON.stringify({ ...decision, id: '' })).not.toContain(decision.id)
  expect(await left(decider)).toEqual([2, 600, 1, 4600])
  const { id } = decision
  expect((await change(decider, 'renew', { id })).json).toEqual({ outcome: 'done' })
  expect((await change(decider, 'settle', { id, units: { tokens: 150 } })).json).toEqual({ outcome: 'done' })
  expect((await change(decider, 'settle', { id, units: { tokens: 150 } })).json).toEqual({ outcome: 'done before' })
  expect(await left(decider)).toEqual([2, 850, 1, 4850])
  expect((await change(decider, 'release', { id })).json).toEqual({ outcome: 'done' })
  expect(await left(decider)).toEqual([2, 850, 2, 4850])
  expect((await change(decider, 'refund', { id })).json).toEqual({ outcome: 'done' })
  expect(await left(decider)).toEqual([3, 850, 2, 4850])
})

test('wrong ids are unknown, and wrong bodies get 400 and change nothing', async () => {
  const decider = await serving(json(TOKENS, '--key', 'user', '--key', 'tenant', '--charges', '1h'))
  const { id } = (await decide(decider, chat)).json
  for (const each of ['', 'x', `${id}x`, id.slice(1), `.${'.'.repeat(100)}`]) {
    expect((await change(decider, 'refund', { id: each })).json).toEqual({ outcome: 'unknown' })
  }
  for (const [path, body, detail] of [
    ['settle', { id, units: { watts: 1 } }, 'watts'],
    ['settle', { id, units: { tokens: -1 } }, 'tokens'],
    ['settle', { id, units: 7 }, 'actual cost'],
    ['settle', { id }, 'actual cost'],
    ['refund', { id, units: 1 }, 'units'],
    ['refund', { id: 7 }, 'id'],
    ['refund', { id: 'x'.repeat(3000) }, 'id'],
    ['refund', [id], 'object'],
  ] as const) {
    const { status, json: problem } = await change(decider, path, body)
    expect([status, problem.detail]).toEqual([400, expect.stringContaining(detail)])
  }
  expect(await left(decider)).toEqual([2, 600, 1, 4600])
})

const SPLIT = documentOf(`
all: { key: user, cost: 5, limits: [{ algorithm: fixedWindow, limit: 100, window: 1d }] }
chat:
  key: user
  cost: { tokens: 500 }
  limits:
    - { algorithm: fixedWindow, limit: 100, window: 1h }
    - { algorithm: fixedWindow, unit: tokens, limit: 1000, window: 1d, name: tokens }`)

/** Decides on another request, and returns the room that it leaves in `all`. */
async function roomInAll(decider: Decider) {
  const { json: decision } = await decide(decider, { path: '/', keys: { user: 'ann' } })
  await change(decider, 'refund', { id: decision.id })
  return decision.limits.find(({ name }: { name: string }) => name === 'all').remaining
}

test('a number settles the requests of all policies that charged, none above its charge', async () => {
  const decider = await serving(json(SPLIT, '--key', 'user', '--charges', '1h'))
  const { id } = (await decide(decider, { path: '/', keys: { user: 'ann' } })).json
  expect(id).toContain('.')
  expect(await roomInAll(decider)).toBe(90)
  const { status, json: problem } = await change(decider, 'settle', { id, units: 6 })
  expect([status, problem.detail]).toEqual([400, expect.stringContaining('from 0 to the 5 charged, got 6')])
  expect(await roomInAll(decider)).toBe(90)
  expect((await change(decider, 'settle', { id, units: 3 })).json).toEqual({ outcome: 'done' })
  expect((await change(decider, 'settle', { id, units: 3 })).json).toEqual({ outcome: 'done before' })
  expect(await roomInAll(decider)).toBe(92)
})

test('units that one of several policies charged are settled once', async () => {
  const decider = await serving(json(SPLIT, '--key', 'user', '--charges', '1h'))
  const { id } = (await decide(decider, { path: '/', keys: { user: 'ann' } })).json
  const settlement = { id, units: { tokens: 0 } }
  expect((await change(decider, 'settle', settlement)).json).toEqual({ outcome: 'done' })
  expect((await change(decider, 'settle', settlement)).json).toEqual({ outcome: 'done before' })
  const admitted = async () => (await decide(decider, { path: '/', keys: { user: 'ann' } })).json.allowed
  expect([await admitted(), await admitted(), await admitted()]).toEqual([true, true, false])
  expect((await change(decider, 'refund', { id })).json).toEqual({ outcome: 'done' })
  expect((await change(decider, 'refund', { id })).json).toEqual({ outcome: 'done before' })
})

test('changes of charges need the token of the decider, POST and no browser', async () => {
  const token = 'a-token-of-the-decider'
  const decider = await serving(json(THREE, '--charges', '10m'), { SLUICE_TOKEN: token })
  const authorized = { Authorization: `Bearer ${token}` }
  expect((await change(decider, 'refund', { id: 'x' })).status).toBe(401)
  expect((await change(decider, 'refund', { id: 'x' }, authorized)).json).toEqual({ outcome: 'unknown' })
  expect((await change(decider, 'refund', { id: 'x' }, { ...authorized, Origin: 'http://localhost' })).status).toBe(403)
  expect((await ask(decider, { path: '/v1/refund', headers: Object.entries(authorized) })).status).toBe(405)
})

test('without --charges, decisions have no id, and neither paths nor permits for their changes', async () => {
  const decider = await serving(json(THREE))
  expect((await decide(decider, { path: '/', ip: '192.0.2.7' })).json).not.toHaveProperty('id')
  expect((await change(decider, 'refund', { id: 'x' })).status).toBe(404)
  const { stderr } = await refused(json(TOKENS, '--key', 'user', '--key', 'tenant'))
  expect(stderr).toContain('--charges 1h lets callers release permits')
})

test('--charges is rejected with other dialects, documents with consistency, and times out of range', async () => {
  const relaxed = documentOf(
    'all: { consistency: { syncEvery: 1s }, limits: [{ algorithm: fixedWindow, limit: 3, window: 1m }] }',
  )
  expect((await refused(json(relaxed, '--charges', '1h'))).stderr).toContain('expected none beside --charges')
  expect((await refused(json(THREE, '--charges', '1ms'))).stderr).toContain('--charges: expected a duration')
  const nginx = ['--document', 'x', '--dialect', 'nginx', '--trust-proxy', 'loopback', '--charges', '1h']
  expect((await refused(nginx)).stderr).toContain('--charges: expected none with this dialect')
})
