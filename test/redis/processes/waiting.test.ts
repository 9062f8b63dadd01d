// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { concurrency, createLimiter, everyone, redisStore } from '@sluice/core'
import { afterEach, expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

ensureBuilt('core', 'express')
const { client, server } = await redisForTests()

const agent = new Agent({ maxSockets: 1000 })
const workers: ChildProcess[] = []
afterEach(async () => {
  const ended = workers.splice(0).map(async (worker) => {
    const exit = worker.exitCode === null && worker.signalCode === null ? once(worker, 'exit') : undefined
    worker.kill('SIGKILL')
    await exit
  })
  await Promise.all(ended)
  await client.flushall()
})

/** Processes behind one limit of one request at a time, which is held until `go`. */
async function start(processes: number, ttl: string) {
  const store = redisStore(client, { timeout: 15_000 })
  const limits = [concurrency({ limit: 1, ttl: '1h', key: everyone() })]
  const holder = createLimiter({ name: 'waiting', store, limits })
  const taken = await holder.consume('all')
  expect(taken.allowed).toBe(true)
  const started = await Promise.all(Array.from({ length: processes }, () => startWorker(ttl)))
  const responses: Promise<number | undefined>[] = []
  const send = (worker: number, priority: number) => {
    responses.push(statusOf((started[worker] as Worker).port, priority))
  }
  const untilWaiting = (worker: number, count: number) =>
    until(`${count} wait in process ${worker}`, () => (started[worker] as Worker).waiting === count)
  const go = async () => {
    await holder.release(taken)
    const statuses = await Promise.all(responses)
    await store.close()
    return statuses
  }
  return { started, send, untilWaiting, go }
}

interface Worker {
  readonly child: ChildProcess
  readonly port: number
  waiting: number
}

async function startWorker(ttl: string): Promise<Worker> {
  const child = fork(fileURLToPath(new URL('waiting.js', import.meta.url)), {
    // Without the options of this process: workers run the built packages, not the source.
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: server.url, TURN_TTL: ttl },
  })
  workers.push(child)
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  const worker: Worker = { child, port, waiting: 0 }
  child.on('message', ({ waiting }: { waiting: number }) => {
    worker.waiting = waiting
  })
  return worker
}

/** Undefined if the process has ended. */
function statusOf(port: number, priority: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, agent, headers: { 'x-priority': String(priority) } }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode))
    })
    request.once('error', () => resolve(undefined))
  })
}

/** Waits until `entries` classes of waiters are reported, of all processes. */
const untilReported = (entries: number) =>
  until(`${entries} classes of waiters are reported`, async () => {
    const [key] = await client.keys('*}*:waiting')
    return key !== undefined && (await client.strlen(key)) === 34 * entries
  })

test('waiters of four processes are served in the order of their priorities', async () => {
  const { send, untilWaiting, go } = await start(4, '1m')
  for (let i = 0; i < 200; i++) send(i % 4, Math.floor(i / 4) % 3)
  for (let worker = 0; worker < 4; worker++) await untilWaiting(worker, 50)
  await untilReported(12)
  expect(await go()).toEqual(new Array(200).fill(200))
  const of = (priority: number) => Array.from({ length: 50 }, (_, i) => i).filter((i) => i % 3 === priority).length * 4
  expect(await client.lrange('served', 0, -1)).toEqual([
    ...new Array(of(2)).fill('2'),
    ...new Array(of(1)).fill('1'),
    ...new Array(of(0)).fill('0'),
  ])
})

test('the waiters of a killed process hold up no other once its report lapses', async () => {
  const { started, send, untilWaiting, go } = await start(2, '500ms')
  send(0, 1)
  await untilWaiting(0, 1)
  send(1, 0)
  await untilWaiting(1, 1)
  await untilReported(2)
  const [{ child }] = started as [Worker]
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
  // Its report lapses although the other process renews the record.
  await untilReported(1)
  expect(await go()).toEqual([undefined, 200])
  expect(await client.lrange('served', 0, -1)).toEqual(['0'])
})
