// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { RedisDocuments } from '@sluice/policies'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { ask, asOperator, withBody } from './support.js'

const PROCESSES = 4

let redis: RedisServer
let workers: ChildProcess[] = []
let ports: number[] = []
beforeAll(async () => {
  ensureBuilt('core', 'policies', 'express', 'console')
  redis = await startRedis()
  for (const [at, limit] of [5, 50].entries()) await documents().save(textOf(limit), at, 'ci')
  const env = { ...process.env, REDIS_URL: redis.url }
  const file = fileURLToPath(new URL('app.js', import.meta.url))
  workers = Array.from({ length: PROCESSES }, () => fork(file, { env, execArgv: [] }))
  ports = await Promise.all(workers.map(async (worker) => ((await once(worker, 'message')) as [number])[0]))
})
afterAll(async () => {
  for (const worker of workers) worker.disconnect()
  await redis.stop()
})

const documents = () => new RedisDocuments((command, ...args) => redis.call(command, ...args), 'default', 'sluice:')
const textOf = (limit: number) => `{ version: 1, policies: { all: { limits: [{ limit: ${limit}, window: 1h }] } } }`

const visit = async (process: number, ip: string, path = '/') =>
  (await ask(ports[process] as number, path, { headers: { 'x-forwarded-for': ip } })).status
const asked = (process: number, path: string, body: object) => {
  const port = ports[process] as number
  return ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
}
const act = async (process: number, path: string, body: object) => {
  const { status, json } = await asked(process, path, body)
  expect(status).toBe(200)
  return json
}

test('a block by one process holds in the others at their next decision, and its end within a second', async () => {
  const identity = { kind: 'ip', value: '192.0.2.1' }
  for (let i = 1; i < PROCESSES; i++) expect(await visit(i, '192.0.2.1')).toBe(i <= 2 ? 200 : 429)
  await act(0, 'reset', { identity })
  await act(0, 'block', { identity, policy: 'api', for: '1h' })
  for (let i = 1; i < PROCESSES; i++) expect(await visit(i, '192.0.2.1')).toBe(429)
  await act(1, 'unblock', { identity, policy: 'api' })
  const since = Date.now()
  await until('every process admits it', async () => (await visit(2, '192.0.2.1')) === 200)
  // The store repeats refusals for up to a second.
  expect(Date.now() - since).toBeLessThan(10_000)
})

test('a console shows the last refusals of every process, with paths and without queries, and erases them', async () => {
  const identity = { kind: 'ip', value: '192.0.2.2' }
  for (let i = 0; i < PROCESSES; i++) for (let n = 0; n < 2; n++) await visit(i, '192.0.2.2', `/from/${i}?secret=1`)
  const pathsOf = async () => {
    const { refusals } = await act(0, 'why', { identity })
    return new Set(refusals.map(({ path }: { path: string }) => path))
  }
  await until('all processes have written theirs', async () => (await pathsOf()).size === 3)
  expect(await pathsOf()).toEqual(new Set(['/from/1', '/from/2', '/from/3']))
  await act(3, 'forget', { identity, confirmed: true })
  await until('they are forgotten', async () => (await pathsOf()).size === 0)
  const keys = (await redis.call('KEYS', '*refusals*')) as string[]
  await until('no process has them in Redis', async () => {
    const texts = await Promise.all(keys.map((key) => redis.call('GET', key)))
    return texts.every((text) => !String(text).includes('192.0.2.2'))
  })
})

test('traffic of every process is one sum by the policies of the document, and so are its live decisions', async () => {
  const ip = '192.0.2.3'
  const visited = await Promise.all(Array.from({ length: 60 }, (_, n) => visit(n % PROCESSES, ip, '/documents/1')))
  expect(visited.filter((status) => status === 429)).toHaveLength(10)
  const traffic = async (more: object) => {
    const to = Date.now() + 60_000
    return act(0, 'traffic', { from: to - 3_600_000, to, policy: 'all', ...more })
  }
  // Other processes write each ten seconds.
  const all = (await until(
    'all processes have written theirs',
    async () => {
      const { paths } = await traffic({})
      return paths.entries[0]?.decisions >= 60 ? paths : undefined
    },
    { everyMs: 500 },
  )) as object
  expect(all).toEqual({ entries: [{ value: '/documents/:number', decisions: 60, refused: 10 }], error: 0 })
  const { clients } = await traffic({ reason: 'refused' })
  expect(clients.entries).toMatchObject([{ client: { kind: 'ip', value: ip }, decisions: 10, refused: 10 }])

  const paths = new Set<string>()
  let after = 0
  await until(
    'refusals of three processes are shown',
    async () => {
      const tail = await act(0, 'tail', { policy: 'all', reason: 'refused', after })
      after = tail.after
      for (const { path } of tail.rows) paths.add(path)
      for (const process of [1, 2, 3]) await visit(process, ip, `/documents/${process}`)
      await visit(1, ip, '/other')
      return paths.size >= 3
    },
    { everyMs: 500 },
  )
  expect(paths).toEqual(new Set(['/documents/1', '/documents/2', '/documents/3']))
})

test('one of four rollbacks at once is in force in every process, and the others are conflicts', async () => {
  const answers = await Promise.all(
    Array.from({ length: PROCESSES }, (_, i) => asked(i, 'rollback', { version: 1, expected: 2 })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
  for (const { json } of answers) expect(json.found ?? json).toEqual({ version: 3 })
  expect(await documents().newest()).toMatchObject({ version: 3, text: textOf(5), by: 'ann' })
  for (let i = 0; i < PROCESSES; i++) {
    await until('it is in force', async () => {
      const port = ports[i] as number
      const { json } = await ask(port, '/sluice/api/policies', { headers: asOperator(port) })
      return json.documents[0].version === '3' && json.documents[0].policies[0].limits[0].limit === 5
    })
  }
  const { entries } = await act(0, 'changes', {})
  const states = entries
    .filter(({ action }: { action: string }) => action === 'rollback')
    .map(({ state }: { state: string }) => state)
  expect(states.filter((state: string) => state === 'done')).toHaveLength(1)
  expect(states).not.toContain('begun')
})
