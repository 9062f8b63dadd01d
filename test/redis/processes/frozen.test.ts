// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { RedisStoreOptions } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { oneOfEach, singleClients } from '../../support/clients.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { startProxy } from '../../support/proxy.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

/** Longer than the timers of a process may be late without a freeze. */
const FREEZE_MS = 1500
/** Far longer than a busy machine takes to reply, and to connect. */
const PATIENT: RedisStoreOptions = { timeout: '5s', connectTimeout: '20s' }

const open = closedAfterEach()
beforeAll(ensureBuiltCore)

async function server(port?: number): Promise<RedisServer> {
  const started = await startRedis(port === undefined ? {} : { port })
  open.push(() => started.stop())
  return started
}

interface Decision {
  readonly kind: string
  readonly allowed: boolean
  readonly tookMs: number
}

/** A container of a function: it runs only while it handles requests. */
class Container {
  /** The states of its store, in order. */
  readonly states: string[] = []
  readonly #process: ChildProcess

  constructor(process: ChildProcess) {
    this.#process = process
    process.on('message', (message: { state?: string }) => message.state && this.states.push(message.state))
  }

  async freeze(): Promise<void> {
    this.#process.kill('SIGSTOP')
    await until('the process is frozen', () => /\) T /.test(readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8')))
  }

  thaw(): void {
    this.#process.kill('SIGCONT')
  }

  /** Handles requests that arrive together. A request that came while it was frozen thaws it. */
  async handle(key: string, times = 1): Promise<Decision[]> {
    const replied = new Promise<Decision[]>((resolve) => {
      const received = (message: { decisions?: Decision[] }) => {
        if (!message.decisions) return
        this.#process.off('message', received)
        resolve(message.decisions)
      }
      this.#process.on('message', received)
    })
    this.#process.send({ key, times })
    this.thaw()
    return replied
  }

  async end(): Promise<void> {
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }
}

async function container(kind: string, port: number, options: RedisStoreOptions = {}): Promise<Container> {
  const child = fork(fileURLToPath(new URL('sleeper.js', import.meta.url)), {
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '', CLIENT: kind, REDIS_PORT: `${port}`, OPTIONS: JSON.stringify(options) },
  })
  const started = new Container(child)
  open.push(() => started.end())
  await once(child, 'message')
  return started
}

/** Closes every connection, as a server or a device between closes idle ones. */
async function closeConnections(redis: RedisServer): Promise<void> {
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until('all connections are closed', async () => (await redis.connections()) === 0)
}

const kindsOf = (decisions: readonly Decision[]) => decisions.map(({ kind }) => kind)

describe.each(oneOfEach(singleClients))('containers over %s', (kind) => {
  test.each([
    ['a moment', 250],
    ['so long that their timers show it', FREEZE_MS],
  ])(
    'two containers, frozen between requests for %s while their connections are closed, count on Redis',
    async (_, ms) => {
      const redis = await server()
      const both = await Promise.all([1, 2].map(() => container(kind, redis.port, PATIENT)))
      const decisions: Decision[] = []
      for (let round = 0; round < 4; round++) {
        for (const each of both) decisions.push(...(await each.handle('client')))
        await Promise.all(both.map((each) => each.freeze()))
        await closeConnections(redis)
        await sleep(ms)
      }
      expect(kindsOf(decisions)).toEqual(Array(8).fill('decided'))
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5)
      expect(both.map(({ states }) => states)).toEqual([[], []])
    },
  )

  test('a container whose connection went silent while it was frozen decides on a new one', async () => {
    const redis = await server()
    const proxy = await startProxy(redis.port)
    open.push(() => proxy.stop())
    const one = await container(kind, proxy.port, { timeout: '3s', connectTimeout: '20s' })
    const decisions = await one.handle('client')
    for (let round = 0; round < 2; round++) {
      await one.freeze()
      proxy.silence()
      await sleep(FREEZE_MS)
      decisions.push(...(await one.handle('client', 3)))
    }
    expect(kindsOf(decisions)).toEqual(Array(7).fill('decided'))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5)
    expect(one.states).toEqual([])
  })

  test('requests that thaw a container while Redis is away share one wait, and later ones do not wait', async () => {
    const redis = await server()
    const proxy = await startProxy(redis.port)
    open.push(() => proxy.stop())
    const one = await container(kind, proxy.port, { timeout: '3s', connectTimeout: '9s' })
    expect(kindsOf(await one.handle('client'))).toEqual(['decided'])
    await one.freeze()
    proxy.toServer.hold()
    await sleep(FREEZE_MS)
    const moment = await one.handle('client', 50)
    expect(kindsOf(moment)).toEqual(Array(50).fill('unavailable'))
    // One wait for each request would take fifty times as long.
    expect(Math.max(...moment.map(({ tookMs }) => tookMs))).toBeLessThan(30_000)
    const began = performance.now()
    for (let n = 0; n < 20; n++) expect(kindsOf(await one.handle('client'))).toEqual(['unavailable'])
    expect(performance.now() - began).toBeLessThan(20_000)
    // By the first of these at the latest: a container that pauses again does not blame Redis for that.
    expect(one.states).toEqual(['unavailable'])
  })

  test('a container that was frozen in an outage decides by Redis with its first request after it', async () => {
    const redis = await server()
    const one = await container(kind, redis.port, PATIENT)
    expect(kindsOf(await one.handle('client'))).toEqual(['decided'])
    await redis.stop()
    await until('the store notices the outage', () => one.states.length > 0)
    expect(kindsOf(await one.handle('client'))).toEqual(['unavailable'])
    await one.freeze()
    await redis.restart()
    await sleep(FREEZE_MS)
    expect(kindsOf(await one.handle('client', 3))).toEqual(Array(3).fill('decided'))
    expect(one.states).toEqual(['unavailable', 'available'])
  })
})
