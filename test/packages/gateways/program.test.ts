// Release: runs gateways.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { adviceHere, find } from '../../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../../scripts/programs.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { example, type RunningDecider, startDecider } from './support.js'

const running: RunningDecider[] = []
afterEach(async () => {
  for (const decider of running.splice(0)) await decider.end('SIGKILL')
})

const decides = async (port: number, args: string[], env: Record<string, string> = {}) => {
  const decider = await startDecider(port, ['--document', example('policies.yaml'), ...args], env)
  running.push(decider)
  return decider
}

async function ask(url: string, ip: string) {
  const response = await fetch(`${url}/v1/decide`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ path: '/', ip }),
  })
  return (await response.json()) as { allowed: boolean; decidedBy: string }
}

test('sluice serve ends with 0 on SIGTERM', async () => {
  const decider = await decides(await freePort(), ['--dialect', 'json'])
  expect((await ask(decider.url, '192.0.2.7')).allowed).toBe(true)
  expect(await decider.end()).toBe(0)
})

const readyStatus = async (url: string) => (await fetch(`${url}/readyz`, { headers: { connection: 'close' } })).status

test('on a signal sluice serve fails /readyz and continues to decide; a second signal ends it at once', async () => {
  const decider = await decides(await freePort(), ['--dialect', 'json', '--grace', '10m'])
  expect(await readyStatus(decider.url)).toBe(200)
  const ended = decider.end()
  await until('the decider is not ready', async () => (await readyStatus(decider.url)) === 503)
  expect((await ask(decider.url, '192.0.2.7')).allowed).toBe(true)
  expect(decider.stderr()).toContain('/readyz answers 503 for 10m, then it ends; a second signal ends it at once')
  decider.end()
  expect(await ended).toBe(null)
})

test('callers that leave once /readyz fails lose no request', async () => {
  const decider = await decides(await freePort(), ['--dialect', 'json', '--grace', '5s'])
  const agent = new Agent({ keepAlive: true })
  let isReady = true
  const caller = async () => {
    while (isReady) expect(await statusOver(agent, decider.url)).toBe(200)
  }
  const calling = Promise.all(Array.from({ length: 16 }, caller))
  await until('all are connected', () => Object.values(agent.sockets).flat().length === 16)
  const ended = decider.end()
  await until('the decider is not ready', async () => (await readyStatus(decider.url)) === 503)
  isReady = false
  await calling
  expect(await ended).toBe(0)
  agent.destroy()
})

test('a signal to all processes, as by systemd or a terminal, begins the grace of workers as well', async () => {
  const redis = await startRedis()
  try {
    const args = ['--dialect', 'json', '--workers', '2', '--grace', '10m']
    const decider = await decides(await freePort(), args, { REDIS_URL: redis.url })
    const workers = await decider.workers()
    for (const pid of workers) process.kill(pid, 'SIGTERM')
    const ended = decider.end()
    await until('the grace has begun', () => decider.stderr().includes('/readyz answers 503'))
    for (const pid of workers) process.kill(pid, 'SIGINT')
    for (let n = 0; n < 4; n++) expect(await readyStatus(decider.url)).toBe(503)
    expect((await ask(decider.url, '192.0.2.7')).allowed).toBe(true)
    expect(await decider.workers()).toEqual(workers)
    decider.end()
    expect(await ended).toBe(null)
    await until('its workers have ended', () => workers.every((pid) => !isAlive(pid)))
  } finally {
    await redis.stop()
  }
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The status of a decision over a persistent connection. */
function statusOver(agent: Agent, url: string): Promise<number | undefined> {
  const body = JSON.stringify({ path: '/', ip: '192.0.2.7' })
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = request(`${url}/v1/decide`, { method: 'POST', agent, headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode))
    })
    sent.once('error', reject).end(body)
  })
}

test('workers share the address and, through Redis, their counts; a killed one is replaced', async () => {
  const redis = await startRedis()
  try {
    const decider = await decides(await freePort(), ['--dialect', 'json', '--workers', '2'], { REDIS_URL: redis.url })
    const allowed: boolean[] = []
    for (let n = 0; n < 8; n++) {
      const decision = await ask(decider.url, '192.0.2.7')
      expect(decision.decidedBy).toBe('store')
      allowed.push(decision.allowed)
    }
    expect(allowed.filter(Boolean)).toHaveLength(3)
    const [victim] = await decider.workers()
    process.kill(victim as number, 'SIGKILL')
    await until('another one has started', async () => {
      const now = await decider.workers()
      return now.length === 2 && !now.includes(victim as number)
    })
    expect((await until('the decider decides', () => ask(decider.url, '192.0.2.8'))).allowed).toBe(true)
    const before = await decider.workers()
    expect(await decider.end()).toBe(0)
    for (const pid of before) expect(() => process.kill(pid, 0)).toThrow()
  } finally {
    await redis.stop()
  }
})

test('metrics of sluice serve are those of all workers together', async () => {
  const redis = await startRedis()
  try {
    const port = await freePort()
    const args = ['--dialect', 'json', '--workers', '2', '--metrics', `127.0.0.1:${port}`]
    const decider = await decides(await freePort(), args, { REDIS_URL: redis.url })
    for (let n = 0; n < 8; n++) await ask(decider.url, '192.0.2.7')
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const counts = [...text.matchAll(/^sluice_requests_total\{policy="default",.*outcome="(\w+)".*\} (\d+)$/gm)]
    const total = counts.reduce((sum, [, , count]) => sum + Number(count), 0)
    expect([total, counts.find(([, outcome]) => outcome === 'admitted')?.[2]]).toEqual([8, '3'])
    expect(await decider.end()).toBe(0)
  } finally {
    await redis.stop()
  }
})

test('an error at the start of the workers is reported once', async () => {
  const redis = await startRedis()
  try {
    const file = join(mkdtempSync(join(tmpdir(), 'sluice-')), 'policies.yaml')
    writeFileSync(
      file,
      'version: 1\npolicies: { a: { count: { only: failure }, limits: [{ limit: 1, window: 1m }] } }\n',
    )
    const env = { REDIS_URL: redis.url }
    const args = ['--document', file, '--dialect', 'json', '--workers', '3']
    const output = String(await startDecider(await freePort(), args, env).then(() => 'the decider serves', String))
    expect(output.split(`${file}:2:18: policies.a.count: expected none`)).toHaveLength(2)
    rmSync(dirname(file), { recursive: true })
  } finally {
    await redis.stop()
  }
})

test('the Python client receives decisions, and reports when there is none', async () => {
  const binary = find(PROGRAMS.python)
  if (binary === undefined) throw new Error(adviceHere([PROGRAMS.python]))
  const port = await freePort()
  const token = 'a-token-of-the-test'
  const decider = await decides(port, ['--dialect', 'json'], { SLUICE_TOKEN: token })
  const client = fileURLToPath(new URL('../../../examples/gateways/clients/sluice_client.py', import.meta.url))
  const run = (script: readonly string[], env: Record<string, string> = {}) =>
    new Promise<{ code: number | null; out: string }>((resolve) => {
      const options = { env: { PATH: process.env.PATH ?? '', PYTHONDONTWRITEBYTECODE: '1', ...env } }
      const child = execFile(binary, script, options, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, out: stdout + stderr }),
      )
    })
  const once = (env: Record<string, string>) => run([client, decider.url, '/login', 'POST', '192.0.2.7'], env)
  expect(await once({})).toMatchObject({ code: 2, out: expect.stringContaining('unavailable 401') })
  expect(await once({ SLUICE_TOKEN: token })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^200 .*"RateLimit"/),
  })
  await once({ SLUICE_TOKEN: token })
  const refused = await once({ SLUICE_TOKEN: token })
  expect(refused).toMatchObject({ code: 1, out: expect.stringMatching(/^429 .*"Retry-After": "\d+"/) })
  const batch = `
import sys
sys.path.insert(0, ${JSON.stringify(fileURLToPath(new URL('.', `file://${client}`)))})
from sluice_client import Decider
decider = Decider(${JSON.stringify(decider.url)}, token=${JSON.stringify(token)})
decisions = decider.decide_all([{"path": "/", "ip": "2001:db8::1"}] * 4)
print([decision["allowed"] for decision in decisions], decider.decide("/", ip="2001:db8:1::2", headers={"host": "a"})["allowed"])
`
  expect(await run(['-c', batch])).toEqual({ code: 0, out: '[True, True, True, False] True\n' })
  await decider.end('SIGKILL')
  expect(await once({ SLUICE_TOKEN: token })).toMatchObject({ code: 2, out: expect.stringContaining('unavailable') })
})
