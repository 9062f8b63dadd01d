import { once } from 'node:events'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import {
  type DecisionEvent,
  degrade,
  everyone,
  fixedWindow,
  gcra,
  memoryStore,
  perMinute,
  type Store,
  throttle,
} from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import type { AnyOptions } from './support/app.js'
import { receive } from './support/receive.js'
import type { Sending, SendingApp, SendingAppFactory } from './support/sending-apps.js'

const STEP = 64 * 1024
const MB = 1_000_000

/** A quota of response bytes, the same in every framework and on every store. */
export function responseBytesContract(name: string, factory: SendingAppFactory, newStore: () => Store): void {
  describe(name, () => {
    const running: SendingApp[] = []
    let names = 0
    afterEach(async () => {
      for (const { server } of running.splice(0)) {
        server.close()
        server.closeAllConnections()
      }
    })
    const start = async (options: AnyOptions, send: Sending) => {
      const app = await factory(
        { name: `${name.replace(/\W/g, '')}${names++}`, store: newStore(), key: everyone(), ...options },
        send,
      )
      running.push(app)
      app.server.listen(0, '127.0.0.1')
      await once(app.server, 'listening')
      const { port } = app.server.address() as AddressInfo
      return { ...app, port, left: async () => (await app.limiter.peek('everyone')).remaining }
    }
    const bytes = (limit: number, more: object = {}) => ({
      limits: [fixedWindow({ limit, window: '1h', unit: 'response-bytes' as const, anchor: 'first-request', ...more })],
    })

    test('the body of a response is charged, in one piece or as a stream, without its headers', async () => {
      const app = await start(bytes(10 * MB), (req) =>
        req.url === '/stream' ? { stream: () => Readable.from(pieces(100, 300)) } : { whole: Buffer.alloc(70_000) },
      )
      const whole = await receive(app.port)
      expect([whole.body.length, whole.isWhole, whole.headers['content-length']]).toEqual([70_000, true, '70000'])
      expect(await app.left()).toBe(10 * MB - 70_000)
      const stream = await receive(app.port, { path: '/stream' })
      expect([stream.body.length, stream.isWhole]).toEqual([30_000, true])
      expect(await app.left()).toBe(10 * MB - 100_000)
    })

    test('a large body in one piece arrives whole and in order, with its length', async () => {
      const body = Buffer.from(Uint32Array.from({ length: 750_000 }, (_, i) => i).buffer)
      const app = await start(bytes(100 * MB), () => ({ whole: body }))
      const got = await receive(app.port)
      expect(got.headers['content-length']).toBe(String(body.length))
      expect(got.body.equals(body)).toBe(true)
      expect(await app.left()).toBe(100 * MB - body.length)
    })

    test('responses without a body count nothing: HEAD, 204 and 304', async () => {
      const app = await start(bytes(MB), (req) => ({
        whole: Buffer.alloc(5000),
        status: req.url === '/204' ? 204 : req.url === '/304' ? 304 : 200,
      }))
      await receive(app.port, { method: 'HEAD' })
      await receive(app.port, { path: '/204' })
      await receive(app.port, { path: '/304' })
      expect(await app.left()).toBe(MB)
    })

    test('quota headers report the remaining bytes at the time of the headers', async () => {
      const app = await start(bytes(MB), () => ({ whole: Buffer.alloc(1000) }))
      const { headers } = await receive(app.port)
      expect(headers['ratelimit-policy']).toMatch(/;q=1000000;qu="content-bytes";w=3600$/)
      expect(headers.ratelimit).toMatch(/;r=1000000;t=0$/)
      expect((await receive(app.port)).headers.ratelimit).toMatch(/;r=999000;t=\d+$/)
    })

    test('without room for a byte requests are refused, with an exact retry-after', async () => {
      let ran = 0
      const app = await start(bytes(5000), () => {
        ran++
        return { whole: Buffer.alloc(6000) }
      })
      expect((await receive(app.port)).isWhole).toBe(true)
      const refused = await receive(app.port)
      expect([refused.status, ran]).toEqual([429, 1])
      const wait = Number(refused.headers['retry-after'])
      expect(wait).toBeGreaterThan(3500)
      expect(wait).toBeLessThanOrEqual(3600)
      expect((await app.limiter.peek('everyone')).allowed).toBe(false)
    })

    test.each([
      ['with a length', (res: ServerResponse) => void res.setHeader('Content-Length', 5 * MB)],
      ['in chunks', () => {}],
    ])('a response %s over the quota is cut, at most a step beyond it', async (_how, begin) => {
      const raw = (res: ServerResponse) => {
        begin(res)
        sendAll(res, 5 * MB)
      }
      const app = await start(bytes(MB), () => ({ raw }))
      const cut = await receive(app.port)
      expect([cut.status, cut.isWhole]).toEqual([200, false])
      expect(cut.body.length).toBeLessThanOrEqual(MB + STEP)
      expect(await app.left()).toBe(0)
      expect((await receive(app.port)).status).toBe(429)
    })

    test('a body in one piece is cut as well, and a stream is closed', async () => {
      let source: Readable | undefined
      const app = await start(bytes(MB), (req) => {
        if (req.url === '/whole') return { whole: Buffer.alloc(5 * MB) }
        source = Readable.from(pieces(500, 10_000))
        return { stream: () => source as Readable }
      })
      const stream = await receive(app.port, { path: '/stream' })
      expect(stream.isWhole).toBe(false)
      expect(stream.body.length).toBeLessThanOrEqual(MB + STEP)
      await app.limiter.reset('everyone')
      const whole = await receive(app.port, { path: '/whole' })
      expect(whole.isWhole).toBe(false)
      expect(whole.body.length).toBeLessThanOrEqual(MB + STEP)
    })

    test('a body that ends with its quota is sent whole', async () => {
      const app = await start(bytes(2 * STEP), () => ({ whole: Buffer.alloc(3 * STEP) }))
      // Two steps have room, the third is the one beyond.
      expect((await receive(app.port)).isWhole).toBe(true)
      expect(await app.left()).toBe(0)
    })

    test('concurrent responses exceed the quota by at most a step each', async () => {
      const app = await start(bytes(MB), () => ({ raw: (res) => sendAll(res, 2 * MB) }))
      const got = await Promise.all([1, 2, 3, 4, 5, 6].map(() => receive(app.port)))
      const sent = got.reduce((sum, { status, body }) => sum + (status === 200 ? body.length : 0), 0)
      expect(got.filter(({ isWhole, status }) => isWhole && status === 200)).toEqual([])
      expect(sent).toBeLessThanOrEqual(MB + 6 * STEP)
      expect(await app.left()).toBe(0)
    })

    test('onExhausted "finish" sends a response that has begun, and refuses later ones', async () => {
      const app = await start({ ...bytes(MB), onExhausted: 'finish' }, () => ({ whole: Buffer.alloc(3 * MB) }))
      const got = await receive(app.port)
      expect([got.isWhole, got.body.length]).toEqual([true, 3 * MB])
      expect(await app.left()).toBe(0)
      expect((await receive(app.port)).status).toBe(429)
    })

    test('a response that goes on beyond a limit counts in full at a larger one', async () => {
      const [small] = bytes(MB).limits
      const [large] = bytes(10 * MB, { name: 'large' }).limits
      const options = { limits: [small, large], onExhausted: 'finish' } as AnyOptions
      const app = await start(options, () => ({ whole: Buffer.alloc(3 * MB) }))
      expect((await receive(app.port)).body.length).toBe(3 * MB)
      const used = async () => (await app.limiter.peek('everyone')).limits.map((each) => each.limit - each.remaining)
      expect(await used()).toEqual([MB, 3 * MB])
    })

    test('throttle sends at full speed while there is quota, then slowly to the end', async () => {
      const respond = throttle({ bytesPerSecond: 200_000 })
      const app = await start({ ...bytes(200_000), respond }, () => ({ whole: Buffer.alloc(400_000) }))
      const first = await receive(app.port)
      expect([first.isWhole, first.body.length]).toEqual([true, 400_000])
      // 200 kB and a step at once; the rest takes most of 0.7 s.
      expect(first.tookMs).toBeGreaterThan(500)
      expect(await app.left()).toBe(0)
      const second = await receive(app.port)
      expect([second.status, second.isWhole]).toEqual([200, true])
      expect(second.tookMs).toBeGreaterThan(1800)
    })

    test('degrade sends small versions once the quota is used up, and finishes a response that has begun', async () => {
      const app = await start({ ...bytes(100_000), respond: degrade() }, (_req, verdict) => ({
        whole: Buffer.alloc(verdict?.degraded ? 10 : 300_000),
      }))
      const large = await receive(app.port)
      expect([large.isWhole, large.body.length]).toEqual([true, 300_000])
      expect((await receive(app.port)).body.length).toBe(10)
    })

    test.each([
      ['cut', {}, true],
      ['finished', { onExhausted: 'finish' as const }, false],
      ['slowed down', { respond: throttle({ bytesPerSecond: 10 * MB }) }, false],
      ['degraded', { respond: degrade() }, false],
    ])(
      'a response that is %s causes one decision event, in addition to its admission',
      async (_what, options, isRefused) => {
        const limits = [perMinute(9, { name: 'requests' }), ...bytes(200_000, { name: 'sent' }).limits]
        const app = await start({ limits, ...options }, () => ({ whole: Buffer.alloc(600_000) }))
        const received: unknown[] = []
        const note = (event: string) => (decision: DecisionEvent) => {
          const { outcome, limit, source, allowed, verdict } = decision
          received.push([event, outcome, limit, source, allowed, verdict.keys])
        }
        const stops = [app.limiter.on('decision', note('decision')), app.limiter.on('refused', note('refused'))]
        await receive(app.port)
        for (const stop of stops) stop()
        const refusal = ['limited', 'sent', 'response', false, [{ kind: 'everyone', value: 'everyone' }]]
        const [admission, ...rest] = received
        expect(admission).toEqual(['decision', 'admitted', undefined, 'store', true, expect.anything()])
        expect(rest).toEqual([['decision', ...refusal], ...(isRefused ? [['refused', ...refusal]] : [])])
      },
    )

    test.each([
      ['cut', {}, 1],
      ['finished', { onExhausted: 'finish' as const }, 0],
      ['slowed down', { respond: throttle({ bytesPerSecond: 10 * MB }) }, 0],
      ['only reported', { enforce: { mode: 'report' as const } }, 0],
    ])('a response that is %s causes a strike only if it is a refusal', async (_what, options, strikes) => {
      const ban = { by: 'everyone', after: 2, within: '1h', for: ['1d'] } as const
      const app = await start({ ...bytes(200_000), ban, ...options }, () => ({ whole: Buffer.alloc(600_000) }))
      const struck: unknown[] = []
      const stop = app.limiter.on('strike', ({ identity }) => void struck.push(identity.value))
      await receive(app.port)
      await until('all is counted', async () => (await app.left()) === 0)
      await until('the strike is known', () => struck.length >= strikes)
      stop()
      expect(struck).toEqual(new Array(strikes).fill('everyone'))
    })

    test('a body that ends with its quota causes no further decision event', async () => {
      const app = await start(bytes(200_000), () => ({ whole: Buffer.alloc(200_000) }))
      const received: unknown[] = []
      const stop = app.limiter.on('decision', ({ outcome, source }) => void received.push([outcome, source]))
      await receive(app.port)
      await until('all is counted', async () => (await app.left()) === 0)
      stop()
      expect(received).toEqual([['admitted', 'store']])
    })

    test('bytes admitted by throttle are counted as well', async () => {
      const respond = throttle({ bytesPerSecond: 10 * MB })
      const limits = [gcra({ limit: 1000, window: '1s', unit: 'response-bytes' })]
      const app = await start({ limits, respond }, () => ({ whole: Buffer.alloc(1000) }))
      await receive(app.port)
      for (let i = 0; i < 5; i++) expect((await receive(app.port)).isWhole).toBe(true)
      expect(await app.left()).toBeLessThan(1000)
    })

    test('in report mode every byte is sent at once and counted', async () => {
      const app = await start({ ...bytes(MB), enforce: { mode: 'report' } }, () => ({ whole: Buffer.alloc(3 * MB) }))
      expect((await receive(app.port)).body.length).toBe(3 * MB)
      await until('all is counted', async () => (await app.left()) === 0)
      const more = await receive(app.port)
      expect([more.status, more.body.length]).toEqual([200, 3 * MB])
    })

    test('a request under limits of requests and bytes is admitted by both or none', async () => {
      const limits = [perMinute(2), ...bytes(MB).limits]
      const app = await start({ limits }, () => ({ whole: Buffer.alloc(300_000) }))
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await receive(app.port)).status)
      expect(statuses).toEqual([200, 200, 429])
      const [requests, sent] = (await app.limiter.peek('everyone')).limits
      expect([requests?.remaining, sent?.remaining, sent?.unit]).toEqual([0, 400_000, 'response-bytes'])
    })

    test('an exhausted quota charges no other limit', async () => {
      const limits = [perMinute(10), ...bytes(1000).limits]
      const app = await start({ limits }, () => ({ whole: Buffer.alloc(1000) }))
      for (let i = 0; i < 4; i++) await receive(app.port)
      expect((await app.limiter.peek('everyone')).limits[0]?.remaining).toBe(9)
    })

    test('a small stream is counted while it lasts', async () => {
      const app = await start(bytes(MB), () => ({
        raw: (res) => {
          res.writeHead(200, { 'Content-Type': 'text/event-stream' })
          res.write('data: 1\n\n')
        },
      }))
      const sent = get({ port: app.port, host: '127.0.0.1', agent: false })
      sent.on('error', () => {})
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      await until('9 bytes are counted', async () => (await app.left()) === MB - 9)
      sent.destroy()
    })

    test('bytes that a client did not receive, because it left, are not charged', async () => {
      const app = await start(bytes(100 * MB), () => ({ whole: Buffer.alloc(50 * MB) }))
      const sent = get({ port: app.port, host: '127.0.0.1', agent: false })
      sent.on('error', () => {})
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.on('error', () => {})
      let got = 0
      response.on('data', (chunk: Buffer) => {
        got += chunk.length
        if (got > MB) sent.destroy()
      })
      await new Promise((resolve) => response.once('close', resolve))
      await until('what was sent is counted', async () => (await app.left()) < 100 * MB - MB)
      // The bytes in the kernels of both sides were sent.
      expect(await app.left()).toBeGreaterThan(60 * MB)
    })

    test('a client that reads nothing pauses its writer, and nothing is buffered for it', async () => {
      let written = 0
      const app = await start(bytes(1000 * MB), () => ({
        stream: () =>
          Readable.from(
            (function* () {
              for (; written < 200 * MB; written += 100_000) yield Buffer.alloc(100_000)
            })(),
          ),
      }))
      const socket = connect(app.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      let before = -1
      await until('the writer waits', async () => {
        const isStill = written > 0 && written === before
        before = written
        await new Promise((resolve) => setTimeout(resolve, 100))
        return isStill
      })
      expect(written).toBeLessThan(100 * MB)
      socket.destroy()
    })

    test('callbacks and return values of write are those of any response', async () => {
      const seen: string[] = []
      const app = await start(bytes(10 * MB), () => ({
        raw: (res) => {
          res.write(Buffer.alloc(200_000), () => seen.push('written'))
          res.once('finish', () => seen.push('finish'))
          res.end('end', () => seen.push('ended'))
        },
      }))
      expect((await receive(app.port)).body.length).toBe(200_003)
      await until('all callbacks', () => seen.length === 3)
      expect(seen[0]).toBe('written')
    })
  })
}

function* pieces(count: number, size: number) {
  for (let i = 0; i < count; i++) yield Buffer.alloc(size, i % 256)
}

/** Writes so many bytes, as fast as the response accepts them. */
function sendAll(response: ServerResponse, bytes: number): void {
  let left = bytes
  const more = () => {
    while (left > 0) {
      const piece = Buffer.alloc(Math.min(left, 10_000))
      left -= piece.length
      if (!response.write(piece)) {
        response.once('drain', more)
        return
      }
    }
    response.end()
  }
  more()
}

export const inMemory = () => memoryStore()
