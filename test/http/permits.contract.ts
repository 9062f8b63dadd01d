import { pipeline, Readable } from 'node:stream'
import { concurrency, createLimiter, everyone, memoryStore, queue, releasePermits } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { until } from '../support/until.js'
import type { AnyOptions } from './support/app.js'
import { type Handling, listen, type PermitAppFactory, type PermitHandlers } from './support/permit-apps.js'
import { type PermitClient, read, stop } from './support/permit-clients.js'

/** A promise that a handler waits for, until the test opens it. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}

const TTL_MS = 60_000
const TICK_MS = TTL_MS / 3

/** Permits of clients that leave, and of clients that do not read, in every framework. */
export function permitContract(name: string, factory: PermitAppFactory, connect: (port: number) => PermitClient): void {
  describe(name, () => {
    const closing: (() => unknown)[] = []
    // The interval in which permits are renewed and checked; other timers are real.
    beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
    afterEach(async () => {
      vi.useRealTimers()
      for (const close of closing.splice(0).reverse()) await close()
    })

    async function start(handlers: PermitHandlers, own: Partial<AnyOptions> = {}, behind: readonly AnyOptions[] = []) {
      const clock = { now: 1_000_000 }
      const handled: Handling[] = []
      /** How many of these responses have closed. */
      const seen = { closed: 0 }
      const see = (handling: Handling) => {
        handled.push(handling)
        handling.raw.on('close', () => seen.closed++)
      }
      const { server, limiter } = await factory(
        [
          {
            name: 'busy',
            store: memoryStore({ clock: () => clock.now }),
            limits: [concurrency({ limit: 2, ttl: TTL_MS, maxHold: 3 * TICK_MS })],
            key: everyone(),
            ...own,
          } as AnyOptions,
          ...behind,
        ],
        {
          answer: async (handling) => {
            see(handling)
            return handlers.answer?.(handling) ?? 'done'
          },
          takeOver: (handling) => {
            see(handling)
            handlers.takeOver?.(handling)
          },
        },
      )
      const port = await listen(server)
      closing.push(() => stop(server))
      const client = connect(port)
      closing.push(() => client.close())
      const free = async () => (await limiter.peek('everyone')).remaining
      return { clock, handled, seen, limiter, client, free }
    }

    /** Sends a request, and leaves once its handler runs; resolves when the server has noticed. */
    async function askAndLeave({ client, handled, seen }: Awaited<ReturnType<typeof start>>, path = '/') {
      const [ran, closed] = [handled.length, seen.closed]
      const sent = await client.ask(path)
      await until('the handler runs', () => handled.length === ran + 1)
      sent.leave()
      await until('the server notices', () => seen.closed === closed + 1)
    }

    test('no more handlers run than there are permits, however early their clients leave', async () => {
      const gates = Array.from({ length: 3 }, gate)
      let ran = 0
      const app = await start({
        async answer() {
          await gates[ran++]?.opened
          return 'done'
        },
      })
      await askAndLeave(app)
      await askAndLeave(app)
      for (let n = 0; n < 5; n++) {
        const { status, leave } = await app.client.ask()
        expect(await status).toBe(429)
        leave()
      }
      expect(ran).toBe(2)
      gates[0]?.open()
      await until('a permit is free', async () => (await app.free()) === 1)
      const third = await app.client.ask()
      await until('the third runs', () => ran === 3)
      gates[1]?.open()
      gates[2]?.open()
      expect(await third.status).toBe(200)
      await until('all permits are free', async () => (await app.free()) === 2)
    })

    test('a permit is released when the handler fails after its client has left', async () => {
      const { open, opened } = gate()
      const app = await start({
        async answer() {
          await opened
          throw new Error('handler')
        },
      })
      await askAndLeave(app)
      expect(await app.free()).toBe(1)
      open()
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test('a permit is released when the connection closes after the response has begun', async () => {
      const app = await start({ takeOver: ({ raw }) => void raw.writeHead(200).write('begun') })
      const sent = await app.client.ask('/raw')
      expect(await sent.status).toBe(200)
      expect(await app.free()).toBe(1)
      sent.leave()
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test.each([
      ['ends the response', (raw: Handling['raw']) => void raw.end('done')],
      ['begins the response', (raw: Handling['raw']) => void raw.writeHead(200)],
    ])('a permit is released when a handler that uses the raw response %s', async (_what, answer) => {
      const app = await start({ takeOver: () => {} })
      await askAndLeave(app, '/raw')
      expect(await app.free()).toBe(1)
      answer((app.handled[0] as Handling).raw)
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test('a permit is released when middleware holds the end of a response back and the client leaves', async () => {
      const app = await start(
        { takeOver: ({ raw }) => void raw.end('done') },
        {
          skip: (_request, { response }) => {
            const raw = response as unknown as Handling['raw']
            const { end } = raw
            // Sends nothing before the client has left, as where it saves a session first.
            raw.end = ((text: string) =>
              raw.on('close', () => setImmediate(() => end.call(raw, text, 'utf8')))) as never
            return false
          },
        },
      )
      await askAndLeave(app, '/raw')
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test('a permit whose handler never responds is renewed while its client is connected, then lapses after ttl', async () => {
      const app = await start({ takeOver: () => {} })
      const leaving = await app.client.ask('/raw')
      await app.client.ask('/raw')
      await until('both handlers run', () => app.handled.length === 2)
      const turn = async () => {
        app.clock.now += TICK_MS
        await vi.advanceTimersByTimeAsync(TICK_MS)
      }
      for (let n = 0; n < 9; n++) await turn()
      expect(await app.free()).toBe(0)
      leaving.leave()
      await until('the server notices', () => app.seen.closed === 1)
      await turn()
      await turn()
      expect(await app.free()).toBe(0)
      await turn()
      // The other permit, whose client is connected, stays taken.
      expect(await app.free()).toBe(1)
      for (let n = 0; n < 9; n++) await turn()
      expect(await app.free()).toBe(1)
    })

    test.each([
      ['releasePermits', (_app: unknown, { raw }: Handling) => releasePermits(raw)],
      [
        'release of the limiter',
        (app: Awaited<ReturnType<typeof start>>, { verdict }: Handling) => app.limiter.release(verdict),
      ],
    ])('a handler that has stopped its work can release its permit by %s, once', async (_by, release) => {
      const app = await start({ takeOver: () => {} })
      await askAndLeave(app, '/raw')
      const first = app.handled[0] as Handling
      await release(app, first)
      expect(await app.free()).toBe(2)
      await app.client.ask('/raw')
      await app.client.ask('/raw')
      await until('others run', () => app.handled.length === 3)
      await release(app, first)
      first.raw.end()
      await new Promise((resolve) => setImmediate(resolve))
      expect(await app.free()).toBe(0)
      await app.limiter.release(undefined)
    })

    test('a handler that responds with a stream holds its permit until the stream has closed', async () => {
      const { open, opened } = gate()
      const sources: Readable[] = []
      const app = await start({
        async answer() {
          // Has nothing to send yet, and stops slowly.
          const source = new Readable({ read() {}, destroy: (error, done) => void opened.then(() => done(error)) })
          sources.push(source)
          return source
        },
      })
      const sent = await app.client.ask()
      await until('the stream is there', () => sources.length === 1)
      await new Promise((resolve) => setImmediate(resolve))
      sent.leave()
      await until('the stream is destroyed', () => sources[0]?.destroyed)
      await new Promise((resolve) => setImmediate(resolve))
      expect(await app.free()).toBe(1)
      open()
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test('a stream piped into a response whose client has left holds the permit until it has closed', async () => {
      const app = await start({ takeOver: () => {} })
      await askAndLeave(app, '/raw')
      const source = new Readable({ read() {} }).on('error', () => {})
      source.pipe((app.handled[0] as Handling).raw)
      await new Promise((resolve) => setImmediate(resolve))
      expect(await app.free()).toBe(1)
      source.destroy()
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    test('a client that leaves a queue behind another limiter releases the permits of both, and no handler runs', async () => {
      const queued = { name: 'queue', store: memoryStore(), limits: [concurrency({ limit: 1 })] }
      await createLimiter({ ...queued, key: everyone() }).consume('everyone')
      const app = await start({}, {}, [{ ...queued, key: everyone(), respond: queue() }])
      const sent = await app.client.ask()
      await until('a permit is taken', async () => (await app.free()) === 1)
      sent.leave()
      await until('the permit is free', async () => (await app.free()) === 2)
      expect(app.handled).toEqual([])
    })

    test('a client that has left before the decision holds a permit until its handler is done', async () => {
      const handler = gate()
      const left = gate()
      let calls = 0
      const app = await start(
        {
          async answer() {
            await handler.opened
            return 'done'
          },
        },
        {
          skip: async (_request, { response }) => {
            response.on('close', left.open)
            calls++
            await left.opened
            return false
          },
        },
      )
      const sent = await app.client.ask()
      await until('the request is being decided', () => calls === 1)
      sent.leave()
      await until('the handler runs', () => app.handled.length === 1)
      expect(await app.free()).toBe(1)
      handler.open()
      await until('the permit is free', async () => (await app.free()) === 2)
    })

    describe('maxHold', () => {
      const body = () => {
        const pulled = { chunks: 0 }
        const source = new Readable({
          read() {
            pulled.chunks++
            this.push(Buffer.alloc(65_536))
          },
        })
        return { pulled, source }
      }

      test('maxHold ends a response that is not read and frees its permit; an idle response is left alone', async () => {
        const { pulled, source } = body()
        const app = await start({
          takeOver: ({ raw }) => {
            if (app.handled.length === 1) raw.writeHead(200).write('data: hello\n\n')
            else pipeline(source, raw.writeHead(200), () => {})
          },
        })
        const events = await app.client.ask('/raw')
        expect(await events.status).toBe(200)
        const stalled = await app.client.ask('/raw')
        expect(await stalled.status).toBe(200)
        await stands(() => pulled.chunks)
        // The first tick records how much has been sent.
        await vi.advanceTimersByTimeAsync(3 * TICK_MS)
        expect([await app.free(), app.seen.closed]).toEqual([0, 0])
        await vi.advanceTimersByTimeAsync(TICK_MS)
        await until('the permit is free', async () => (await app.free()) === 1)
        expect(source.destroyed).toBe(true)
        stalled.incoming.resume()
        await stalled.closed
        await vi.advanceTimersByTimeAsync(9 * TICK_MS)
        expect(await app.free()).toBe(1)
        app.handled[0]?.raw.end()
      })

      test('maxHold leaves a response alone that is read slowly', async () => {
        const { pulled, source } = body()
        const app = await start({ takeOver: ({ raw }) => void pipeline(source, raw.writeHead(200), () => {}) })
        const sent = await app.client.ask('/raw')
        expect(await sent.status).toBe(200)
        await stands(() => pulled.chunks)
        for (let n = 0; n < 8; n++) {
          await vi.advanceTimersByTimeAsync(TICK_MS)
          const before = pulled.chunks
          while (pulled.chunks === before) {
            await read(sent.incoming, 65_536)
            await new Promise((resolve) => setImmediate(resolve))
          }
        }
        expect([await app.free(), app.seen.closed]).toEqual([1, 0])
        sent.leave()
        await until('the permit is free', async () => (await app.free()) === 2)
      })
    })
  })
}

/** Resolves when a number has stopped growing, as the buffers are full. */
export async function stands(look: () => number): Promise<void> {
  let last = -1
  await until(
    'buffers are full',
    () => {
      const now = look()
      const isSame = now === last && now > 0
      last = now
      return isSame
    },
    { everyMs: 50 },
  )
}
