// Runs alone: it reads the figures of all stores of its process.
import { run } from '@sluice/cli'
import { expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { ask, type Decider, decide, documentOf, endWithTests, json, serving } from './support.js'

endWithTests()

const ANN = { path: '/', ip: '192.0.2.7' }
const TOKEN = 'a-token-of-the-test'
const METRICS = ['--metrics', '127.0.0.1:0']

/** Limits with different names, as metrics are of the whole process. */
const policy = (name: string) => documentOf(`${name}: { limits: [{ limit: 2, window: 1h }] }`)

/** The listener of the metrics, to pass to `ask` in place of the decider. */
function metricsOf({ stdout }: Decider): { port: number } {
  return { port: Number(/metrics on https?:\/\/\S+:(\d+)\/metrics\n/.exec(stdout)?.[1]) }
}

const basic = (password: string): [string, string] => [
  'Authorization',
  `Basic ${Buffer.from(`sluice:${password}`).toString('base64')}`,
]

/** The output of a command of the CLI. */
async function printed(args: string[], env: Record<string, string>): Promise<string> {
  let text = ''
  const output = { write: (part: string) => (text += part) }
  await run(args, { env, stdout: output, stderr: output, version: '0' })
  return text
}

test('metrics of a decider have their own listener', async () => {
  const decider = await serving(json(policy('shown'), ...METRICS))
  for (let n = 0; n < 3; n++) await decide(decider, ANN)
  const { status, headers, text } = await ask(metricsOf(decider), { path: '/metrics' })
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  expect(text).toMatch(/^sluice_requests_total\{policy="default",tier="",limit="",outcome="admitted",.*\} 2$/m)
  expect(text).toMatch(/^sluice_requests_total\{policy="default",tier="",limit="shown",outcome="limited",.*\} 1$/m)
  // Callers of the decider cannot read the metrics, and readers of metrics cannot call it.
  expect((await ask(decider, { path: '/metrics' })).status).toBe(404)
  expect((await decide(metricsOf(decider), ANN)).status).toBe(404)
  expect((await ask(metricsOf(decider), { path: '/metrics', method: 'POST' })).status).toBe(405)
})

test('without a token metrics are served only under an address, which keeps out DNS rebinding', async () => {
  const decider = await serving(json(policy('rebound'), ...METRICS))
  const { port } = metricsOf(decider)
  const responseTo = async (host: string) => (await ask({ port }, { path: '/metrics', host })).status
  for (const host of ['127.0.0.1', `127.0.0.1:${port}`, `[::1]:${port}`, `localhost:${port}`]) {
    expect(await responseTo(host), host).toBe(200)
  }
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect(await responseTo(host), host).toBe(421)
  }
})

test('with a token metrics are served to requests that send it, as a bearer or a password', async () => {
  const decider = await serving(json(policy('guarded'), ...METRICS), { SLUICE_TOKEN: TOKEN })
  const { port } = metricsOf(decider)
  const responseTo = async (...headers: [string, string][]) =>
    (await ask({ port }, { path: '/metrics', headers })).status
  expect(await responseTo()).toBe(401)
  expect(await responseTo(['Authorization', 'Bearer another-token-here'])).toBe(401)
  expect(await responseTo(basic('another-token-here'))).toBe(401)
  expect(await responseTo(['Authorization', `Bearer ${TOKEN}`])).toBe(200)
  expect(await responseTo(basic(TOKEN))).toBe(200)
})

test('a decider in memory lists offenders beside its metrics', async () => {
  const decider = await serving(json(policy('refusing'), ...METRICS, '--offenders'))
  for (let n = 0; n < 5; n++) await decide(decider, ANN)
  const responseTo = (query: string) => ask(metricsOf(decider), { path: `/offenders${query}` })
  const { status, json: report } = await responseTo('?policy=refusing&in=10m&top=3')
  expect([status, report.refusals]).toEqual([200, 3])
  expect(report.offenders).toEqual([{ kind: 'ip', value: '192.0.2.7', refusals: 3 }])
  for (const wrong of ['', '?in=2h', '?top=0', '?top=1001', '?top=x', '?most=3']) {
    expect([wrong, (await responseTo(wrong && `${wrong}&policy=refusing`)).status]).toEqual([wrong, 400])
  }
  expect((await ask(decider, { path: '/offenders' })).status).toBe(404)
})

test('offenders are counted and listed only with --offenders', async () => {
  const decider = await serving(json(policy('quiet'), ...METRICS))
  expect((await ask(metricsOf(decider), { path: '/offenders' })).status).toBe(404)
})

test('sluice offenders lists the offenders of deciders on Redis', async () => {
  const server = await startRedis()
  const env = { REDIS_URL: server.url }
  try {
    const decider = await serving(json(policy('api'), '--offenders'), env)
    for (let n = 0; n < 5; n++) await decide(decider, ANN)
    const report = await until('the refusals are counted', async () => {
      const { refusals, offenders } = JSON.parse(await printed(['offenders', '--policy', 'api', '--json'], env))
      return refusals === 3 && offenders
    })
    expect(report).toEqual([{ kind: 'ip', value: '192.0.2.7', refusals: 3 }])
  } finally {
    await server.stop()
  }
})
