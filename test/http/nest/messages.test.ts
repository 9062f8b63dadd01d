// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { INestApplication } from '@nestjs/common'
import { APP_GUARD, ExternalContextCreator } from '@nestjs/core'
import { WsAdapter } from '@nestjs/platform-ws'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import {
  byUser,
  leakyBucket,
  RateLimit,
  rateLimitGuard,
  SkipRateLimit,
  SluiceLimiters,
  SluiceModule,
  type SluiceModuleOptions,
} from '@sluice/nestjs'
import { startRecording } from '@sluice/simulate/recording'
import { io } from 'socket.io-client'
import { WebSocket } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'
import { until } from '../../support/until.js'
import { classOf, guarded, loggedDuring } from '../support/nest.js'
import { serve } from './apps.js'

interface Client {
  /** Sends a message, and resolves to the name and the data of the next event. */
  ask(event: string): Promise<readonly [event: string, data: unknown]>
  send(event: string): void
  close(): void
}

type Connect = (url: string, headers?: Record<string, string>) => Promise<Client>

const overWs: Connect = async (url) => {
  const socket = new WebSocket(url.replace('http', 'ws'))
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
  const send = (event: string) => socket.send(JSON.stringify({ event, data: {} }))
  const ask: Client['ask'] = (event) =>
    new Promise((resolve) => {
      socket.addEventListener(
        'message',
        ({ data }) => {
          const { event: name, data: body } = JSON.parse(String(data))
          resolve([name, body])
        },
        { once: true },
      )
      send(event)
    })
  return { ask, send, close: () => socket.close() }
}

const overSocketIo: Connect = async (url, extraHeaders = {}) => {
  const socket = io(url, { transports: ['websocket'], extraHeaders, forceNew: true })
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  const send = (event: string) => void socket.emit(event, {})
  const ask: Client['ask'] = (event) =>
    new Promise((resolve) => {
      const note = (name: string, data: unknown) => {
        socket.offAny(note)
        resolve([name, data])
      }
      socket.onAny(note)
      send(event)
    })
  return { ask, send, close: () => socket.disconnect() }
}

const LIBRARIES: readonly [name: string, connect: Connect, setUp: (app: INestApplication) => void][] = [
  ['ws', overWs, (app) => app.useWebSocketAdapter(new WsAdapter(app))],
  ['socket.io', overSocketIo, () => {}],
]

const clients: Client[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
})

const SAID = ['said', 'hello'] as const
const REFUSED = [
  'exception',
  { status: 'error', message: 'Too Many Requests', statusCode: 429, retryAfter: expect.any(Number) },
]

describe.each(LIBRARIES)('messages over %s', (_name, connect, setUp) => {
  /** An app whose messages `say` are limited, `hum` not. */
  async function chat(own: Parameters<typeof RateLimit>[0], options: SluiceModuleOptions = {}) {
    let said = 0
    const say = () => {
      said++
      return { event: 'said', data: 'hello' }
    }
    const hum = () => ({ event: 'hummed', data: 'hm' })
    const Chat = classOf(
      'Chat',
      { say: [say, SubscribeMessage('say'), RateLimit(own)], hum: [hum, SubscribeMessage('hum')] },
      WebSocketGateway(),
    )
    const module = guarded({ limits: SluiceModule.forRoot(options), providers: [Chat] })
    const { app, url } = await serve('express', module, setUp)
    const client = async (headers?: Record<string, string>) => {
      const made = await connect(url, headers)
      clients.push(made)
      return made
    }
    return { client, said: () => said, limiter: app.get(SluiceLimiters).get('Chat-say') }
  }

  test('a recording has each message while the socket is open, without a status', async () => {
    const { client } = await chat({ limit: 2, window: '1m' })
    const file = join(mkdtempSync(join(tmpdir(), 'sluice-messages-')), 'messages.log')
    const recording = startRecording({ file, secret: 'a secret of all processes' })
    try {
      const ann = await client()
      for (let i = 0; i < 3; i++) await ann.ask('say')
      await until('all messages are recorded', async () => recording.written === 3)
    } finally {
      await recording.stop()
    }
    const records = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{'))
    const read = records.map((line) => JSON.parse(line))
    expect(read.map(({ outcome }) => outcome)).toEqual(['admitted', 'admitted', 'limited'])
    for (const record of read) {
      expect(record).toMatchObject({ method: 'MESSAGE', path: '/say' })
      expect(record).not.toHaveProperty('status')
    }
    rmSync(dirname(file), { recursive: true })
  })

  test('a refused message is an event `exception`, and the connection goes on', async () => {
    const { client, said } = await chat({ limit: 2, window: '1m' })
    const ann = await client()
    expect([await ann.ask('say'), await ann.ask('say'), await ann.ask('say')]).toEqual([SAID, SAID, REFUSED])
    expect(await ann.ask('hum')).toEqual(['hummed', 'hm'])
    expect(said()).toBe(2)
  })

  test.each(['reject', 'pass'] as const)(
    'with onInvalid %s, a message without a key is a bad request, and no error in the log',
    async (onInvalid) => {
      const { client } = await chat({ limit: 1, window: '1m', key: byUser(() => undefined), onInvalid })
      const ann = await client()
      const { result, logged } = await loggedDuring(() => ann.ask('say'))
      expect(result).toEqual(['exception', { status: 'error', message: 'Bad Request', statusCode: 400 }])
      expect(logged).toEqual([])
    },
  )

  test('all sockets of an address share its limit', async () => {
    const { client } = await chat({ limit: 2, window: '1m' })
    const [ann, bob] = [await client(), await client()]
    expect([await ann.ask('say'), await bob.ask('say')]).toEqual([SAID, SAID])
    expect(await bob.ask('say')).toEqual(REFUSED)
    bob.close()
    expect(await (await client()).ask('say')).toEqual(REFUSED)
  })

  test('a message that waits is refunded when its client leaves, and hundreds may wait on one socket', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    const limits = [leakyBucket({ leak: 1, every: '1h', capacity: 201, queue: true })]
    const { client, said, limiter } = await chat({ limits })
    const left = async () => (await limiter.peek({ ip: '127.0.0.1' })).remaining
    const ann = await client()
    expect(await ann.ask('say')).toEqual(SAID)
    for (let n = 0; n < 200; n++) ann.send('say')
    expect(await ann.ask('hum')).toEqual(['hummed', 'hm'])
    expect(await left()).toBe(0)
    ann.close()
    await until('the refunds', async () => (await left()) === 200)
    expect(said()).toBe(1)
    process.removeListener('warning', note)
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
  })
})

test('an address of the handshake that the application trusts identifies the client', async () => {
  const socketAddress = (client: { handshake: { headers: Record<string, string> } }) =>
    client.handshake.headers['x-real-ip']
  const [, connect, setUp] = LIBRARIES[1] as (typeof LIBRARIES)[number]
  const Chat = classOf(
    'Chat',
    { say: [() => ({ event: 'said', data: 'hello' }), SubscribeMessage('say')] },
    WebSocketGateway(),
    RateLimit({ limit: 1, window: '1m' }),
  )
  const { url } = await serve(
    'express',
    guarded({ limits: SluiceModule.forRoot({ socketAddress }), providers: [Chat] }),
    setUp,
  )
  for (const address of ['203.0.113.1', '203.0.113.2']) {
    const client = await connect(url, { 'x-real-ip': address })
    clients.push(client)
    expect([await client.ask('say'), await client.ask('say')]).toEqual([SAID, REFUSED])
  }
})

describe('messages of other transports', () => {
  /** Calls a handler as packages for other transports do, by Nest's own creator of contexts: the type alone differs. */
  async function calls(type: string, metadata: Parameters<typeof guarded>[0], ...decorators: unknown[]) {
    const Jobs = classOf('Jobs', { run: [() => 'done', ...decorators] })
    const { app } = await serve('express', guarded({ ...metadata, providers: [Jobs, ...(metadata.providers ?? [])] }))
    const jobs = app.get(Jobs)
    const guards = { guards: true, interceptors: false, filters: false }
    const run = app
      .get(ExternalContextCreator)
      .create(jobs, jobs.run, 'run', undefined, undefined, undefined, undefined, guards, type)
    const warnings = await warningsDuring(async () => {
      expect([await run({}, {}), await run({}, {})]).toEqual(['done', 'done'])
    })
    return warnings.map(({ message }) => message)
  }
  const limits = () => SluiceModule.forRoot({ limit: 1, window: '1m' })

  test('a message of a microservice passes a global guard, without a limit', async () => {
    expect(await calls('rpc', { limits: limits() })).toEqual([])
  })

  test.each(['rmq', 'necord', 'telegraf'])('a message of the type %s does as well, with one warning', async (type) => {
    expect(await calls(type, { limits: limits() })).toEqual([
      expect.stringMatching(`^SluiceGuard: .*"${type}" .* not limited`),
    ])
    // Once for each process, and not for each of its apps.
    expect(await calls(type, { limits: limits() })).toEqual([])
  })

  test('no message of a type that no limiter would decide on causes a warning', async () => {
    expect(await calls('kafka', { limits: SluiceModule.forRoot() })).toEqual([])
    expect(await calls('kafka', { limits: limits() }, SkipRateLimit())).toEqual([])
  })

  test.each(['rpc', 'sqs'])('a guard of its own limits no message of the type %s, and warns', async (type) => {
    const guard = rateLimitGuard({ limit: 1, window: '1m' })
    const providers = [{ provide: APP_GUARD, useValue: guard }]
    expect(await calls(type, { limits: SluiceModule.forRoot(), providers })).toEqual([
      expect.stringMatching(`"${type}" .* not limited`),
    ])
  })

  test('a decorator limits no message of an unknown type, and warns', async () => {
    const decorator = RateLimit({ limit: 1, window: '1m' })
    expect(await calls('nats', { limits: SluiceModule.forRoot() }, decorator)).toHaveLength(1)
  })
})
