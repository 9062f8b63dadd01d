import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { everyone, gcra, memoryStore, queue, tarpit, throttle } from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { failuresDuring } from '../support/process-events.js'
import type { AnyOptions } from './support/app.js'
import { LATE_PATHS, type LateApp, type LateAppFactory, OTHER_PATHS } from './support/late-apps.js'

const LARGEST = 1000

/** Clients and handlers that act late never end the process, in any framework. */
export function lateContract(name: string, factory: LateAppFactory): void {
  const isHttp2 = name.endsWith('HTTP/2')
  const request = isHttp2 ? http2Request : httpRequest

  describe(name, () => {
    const running: LateApp[] = []
    const closing: (() => unknown)[] = []
    afterEach(() => {
      for (const close of closing.splice(0)) close()
      for (const { server } of running.splice(0)) server.close()
    })
    const start = async (...options: AnyOptions[]) => {
      const { open: goOn, opened: later } = gate()
      const all = options.map((each) => ({ key: everyone(), store: memoryStore(), ...each }))
      const app = await factory(all, () => later)
      running.push(app)
      app.server.on('connection', (socket) => closing.push(() => socket.destroy()))
      app.server.listen(0, '127.0.0.1')
      await once(app.server, 'listening')
      const { port } = app.server.address() as AddressInfo
      return { ...app, goOn, ask: (path: string, bytes?: number) => request(port, path, bytes) }
    }

    const options: Record<string, AnyOptions> = {
      'a largest body alone': { limit: 1000, window: '1h', body: { max: LARGEST } },
      'report mode': { limit: 1000, window: '1h', body: { max: LARGEST }, enforce: { mode: 'report' } },
      'a limit of bytes': {
        limits: [gcra({ limit: 1_000_000, window: '1h', unit: 'content-bytes' })],
        body: { max: LARGEST },
      },
    }

    test.each(Object.entries(options))(
      'a handler that responds after a body was cut off has a response without effect: %s',
      async (_name, each) => {
        const app = await start(each)
        const failures = await failuresDuring(async () => {
          const statuses = await Promise.all(LATE_PATHS.map((path) => app.ask(path, LARGEST + 1)))
          expect(statuses).toEqual(LATE_PATHS.map(() => 413))
          expect(app.ran.sort()).toEqual([...LATE_PATHS].sort())
          app.goOn()
          await expect.poll(() => app.sources.size).toBe(0)
          await expect.poll(() => app.called.sort()).toEqual(['end', 'write'])
        })
        expect(failures).toEqual([])
        expect(app.errors.map(String).filter((error) => !/late|body too large/.test(error))).toEqual([])
        expect(await app.ask('/')).toBe(200)
      },
    )

    test('a body cut off while its handler reads or responds does not end the process', async () => {
      const app = await start(options['a largest body alone'] as AnyOptions)
      const failures = await failuresDuring(async () => {
        setTimeout(app.goOn, 50)
        await Promise.all(OTHER_PATHS.map((path) => app.ask(path, LARGEST + 1)))
        expect(await app.ask('/')).toBe(200)
        await expect.poll(() => app.sources.size).toBe(0)
      })
      expect(failures).toEqual([])
    })

    const waiting: Record<string, (opened: Promise<void>) => AnyOptions> = {
      'is decided on by another limiter': (opened) => ({ cost: () => opened.then(() => 1) }),
      'may be skipped by another limiter': (opened) => ({ skip: () => opened.then(() => false) }),
      'waits in a queue': () => ({ respond: queue({ maxWait: '2h' }) }),
      'waits in a tarpit': () => ({ respond: tarpit({ for: 100 }) }),
    }
    // HTTP/2 delivers nothing of a body before a handler reads it.
    test.each(isHttp2 ? [] : Object.entries(waiting))(
      'a body that is cut off while its request %s runs no handler and charges nothing',
      async (_name, waits) => {
        const { open, opened } = gate()
        const other = { limit: 2, window: '1h', ...waits(opened) }
        const app = await start({ limit: 1000, window: '1h', body: { max: LARGEST } }, other as never)
        const left = async () => (await app.limiters[1]?.peek('everyone'))?.remaining
        if (other.respond) await app.limiters[1]?.consume('everyone', { cost: 2 })
        const failures = await failuresDuring(async () => {
          expect(await app.ask('/iterate', LARGEST + 1)).toBe(413)
          open()
          if (other.respond) await new Promise((resolve) => setTimeout(resolve, 150))
          else expect(await app.ask('/')).toBe(200)
        })
        expect([failures, app.errors]).toEqual([[], []])
        expect(app.ran).toEqual(other.respond ? [] : ['/'])
        expect(await left()).toBe(other.respond ? 0 : 1)
      },
    )

    test.runIf(!isHttp2)(
      'a body that is cut off before another limiter runs has its cost function not called',
      async () => {
        const { open, opened } = gate()
        let calls = 0
        const cost = () => {
          calls++
          throw new TypeError('no body')
        }
        const limited = { limit: 1000, window: '1h' } as const
        const app = await start(
          { ...limited, body: { max: LARGEST } },
          { ...limited, skip: () => opened.then(() => true) },
          { ...limited, cost },
        )
        expect(await app.ask('/iterate', LARGEST + 1)).toBe(413)
        open()
        await new Promise((resolve) => setTimeout(resolve, 50))
        expect([calls, app.errors, app.ran]).toEqual([0, [], []])
      },
    )

    test.each(['at once', 'in the middle'])('a reply whose stream fails %s ends only its own request', async (when) => {
      const respond = () => ({
        ...{ status: 429, headers: [], showsQuota: true },
        body: Readable.from(failing(when === 'in the middle')),
      })
      const app = await start({ limit: 1, window: '1h', respond })
      expect(await app.ask('/')).toBe(200)
      const failures = await failuresDuring(() => app.ask('/'))
      expect(failures).toEqual([])
    })

    test('a limiter behind middleware that has begun to respond does not end the process', async () => {
      const app = await start({ limit: 2, window: '1h' }, { limit: 3, window: '1h', cost: async () => 1 })
      const failures = await failuresDuring(async () => {
        for (let n = 0; n < 5; n++) await app.ask('/flushed')
      })
      expect(failures).toEqual([])
      expect(await app.ask('/')).toBe(429)
    })

    test('a handler that writes after its end, while throttled, does not end the process', async () => {
      const app = await start({ limit: 0, window: '1h', respond: throttle({ bytesPerSecond: 5000 }) })
      const failures = await failuresDuring(async () => {
        setTimeout(app.goOn, 20)
        expect(await app.ask('/after-end')).toBe(200)
      })
      expect(failures).toEqual([])
    })
  })
}

function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

async function* failing(isLate: boolean) {
  if (isLate) yield 'x'
  throw new Error('no stream')
}

/** Sends a GET with a chunked body in two pieces. Resolves to the status, or to undefined without one. */
async function httpRequest(port: number, path: string, bytes?: number): Promise<number | undefined> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('error', () => {})
  const closed = once(socket, 'close')
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`)
  if (bytes === undefined) socket.write('\r\n')
  else {
    socket.write('Transfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n')
    socket.write(`1\r\nx\r\n`)
    await new Promise((resolve) => setTimeout(resolve, 2))
    socket.write(`${(bytes - 1).toString(16)}\r\n${'x'.repeat(bytes - 1)}\r\n0\r\n\r\n`)
  }
  await closed
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
  return status === undefined ? undefined : Number(status)
}

async function http2Request(port: number, path: string, bytes?: number): Promise<number | undefined> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  const stream = session.request(
    { ':method': 'GET', ':path': path, 'content-type': 'text/plain' },
    { endStream: bytes === undefined },
  )
  let status: number | undefined
  stream
    .on('error', () => {})
    .on('response', (headers) => {
      status = headers[':status']
    })
  const closed = new Promise((resolve) => stream.once('close', resolve))
  stream.resume()
  if (bytes !== undefined) {
    stream.write('x')
    await new Promise((resolve) => setTimeout(resolve, 2))
    const rest = 'x'.repeat(bytes - 1)
    if (OTHER_PATHS.includes(path)) stream.end(rest)
    // Goes on, so that the server has to end the stream.
    else stream.write(rest)
  }
  await closed
  session.destroy()
  return status
}
