// Deep: takes minutes.
import { Controller, Get, Module } from '@nestjs/common'
import { concurrency, RateLimit, rateLimitGuard, SkipRateLimit, SluiceModule, slidingLog } from '@sluice/nestjs'
import { expect, test } from 'vitest'
import {
  ask as askDecider,
  decide,
  documentOf,
  endWithTests,
  gateway,
  json,
  refused,
  serving,
} from '../../cli/serve/support.js'
import { serve } from '../../http/nest/apps.js'
import { classOf, PLATFORMS } from '../../http/support/nest.js'
import { namesInSources } from '../../support/source-names.js'
import { expectNoReads, readsDuring } from './reads.js'

endWithTests()
const names = namesInSources()

const POLICIES = documentOf(
  `pages: { limits: [{ limit: 2, window: 1m }] }
paths: { match: { paths: [/api/**], methods: [GET] }, key: user, tier: plan, tiers: { free: [{ limit: 1, window: 1m }] } }
calls: { match: { paths: [/calls] }, limits: [{ algorithm: concurrency, limit: 1 }] }`,
)

test('sluice serve reads no property of Object.prototype while it decides, changes charges and shows metrics', async () => {
  const named = ['--key', 'user', '--tier', 'plan', '--charges', '1h', '--metrics', '127.0.0.1:0']
  const decider = await serving(json(POLICIES, ...named))
  const metrics = { port: Number(/metrics on https?:\/\/\S+:(\d+)\/metrics\n/.exec(decider.stdout)?.[1]) }
  const ann = { path: '/', ip: '192.0.2.7' }
  await expectNoReads(names, async (note) => {
    for (let i = 0; i < 3; i++) note(await decide(decider, ann))
    note(
      await decide(decider, {
        requests: [ann, { ...ann, path: '/api/a', keys: { user: 'ann' }, tiers: { plan: 'free' } }],
      }),
    )
    const call = await decide(decider, { ...ann, path: '/calls', method: 'POST', headers: { 'x-a': 'a' } })
    note(call)
    for (const change of ['settle', 'renew', 'refund', 'release', 'unknown']) {
      const body = JSON.stringify({ id: call.json.id, ...(change === 'settle' && { units: { requests: 1 } }) })
      const headers = Object.entries({ 'Content-Type': 'application/json', 'Content-Length': `${body.length}` })
      note(await askDecider(decider, { method: 'POST', path: `/v1/${change}`, headers, body }))
    }
    note(await decide(decider, { pth: '/' }))
    for (const path of ['/healthz', '/readyz', '/v1/nothing']) note(await askDecider(decider, { path }))
    for (const path of ['/metrics', '/nothing']) note(await askDecider(metrics, { path }))
  })
})

test('a command reads no option of Object.prototype', async () => {
  const args = json(POLICIES, '--key', 'user', '--tier', 'plan', '--unavailable', 'never')
  let stderr = ''
  const reads = await readsDuring(names, async () => {
    stderr = (await refused(args)).stderr
  })
  expect(reads).toEqual([])
  expect(stderr).toContain('--unavailable')
})

test.each(['nginx', 'forward-auth', 'haproxy'])('sluice serve reads none for %s', async (dialect) => {
  const decider = await serving(gateway(dialect, documentOf('pages: { limits: [{ limit: 1, window: 1m }] }')))
  const headers = [
    ['X-Original-URI', '/a'],
    ['X-Original-Method', 'GET'],
    ['X-Forwarded-Uri', '/a'],
    ['X-Forwarded-Method', 'GET'],
    ['X-Forwarded-For', '192.0.2.7'],
  ] as const
  const reads = await readsDuring(names, async () => {
    for (let i = 0; i < 3; i++) await askDecider(decider, { path: '/', headers })
  })
  expect(reads).toEqual([])
})

const Pages = classOf(
  'Pages',
  {
    page: [() => 'done', Get('/page')],
    changed: [() => 'done', RateLimit({ limits: { page: slidingLog({ limit: 1, window: '1m' }) } }), Get('/changed')],
    own: [() => 'done', RateLimit({ limits: [concurrency({ limit: 1 })] }), Get('/own')],
    free: [() => 'done', SkipRateLimit(), Get('/free')],
  },
  Controller(),
)
const limits = SluiceModule.forRoot({ limits: [slidingLog({ limit: 2, window: '1m', name: 'page' })] })
const App = classOf('App', {}, Module({ imports: [limits], controllers: [Pages] }))

/** Sockets of ws and of socket.io, which lack fields of each other. */
const SOCKETS: Readonly<Record<string, object>> = {
  ws: { _socket: { remoteAddress: '192.0.2.7' }, readyState: 1, on() {}, removeListener() {} },
  'socket-io': { handshake: { address: '192.0.2.7' }, disconnected: false, on() {}, removeListener() {} },
}

test.each(Object.keys(SOCKETS))('Nest reads none for a message over %s', async (library) => {
  const client = SOCKETS[library]
  const guard = rateLimitGuard({ name: library, limit: 2, window: '1m' })
  const execution = {
    getType: () => 'ws',
    switchToWs: () => ({ getClient: () => client, getPattern: () => 'say' }),
  }
  const decided: unknown[] = []
  const reads = await readsDuring(names, async () => {
    for (let i = 0; i < 3; i++) {
      const args = [client, {}]
      const message = { ...execution, getArgs: () => args }
      const decision = Promise.resolve(guard.canActivate(message as never))
      decided.push(await decision.catch((error: Error) => error.message))
    }
  })
  expect(reads).toEqual([])
  expect(decided).toEqual([true, true, 'Too Many Requests'])
})

test.each(PLATFORMS)('Nest on %s reads no property of Object.prototype by our code', async (on) => {
  const { statuses } = await serve(on, App)
  const reads = await readsDuring(names, async () => {
    for (const path of ['/page', '/changed', '/own', '/free', '/nothing']) await statuses(path, 3)
  })
  expect(reads).toEqual([])
})
