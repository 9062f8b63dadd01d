// Runs alone: it inspects all timers.
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type HttpContext, type Refused, throttle, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const closing = closedAfterEach()

/** Serves with plain Node, each response throttled, and sends one request. */
async function ask(bytesPerSecond: number, after: number, serve: RequestListener): Promise<IncomingMessage> {
  const respond = throttle({ bytesPerSecond, after })
  const server = createServer((req, res) => {
    const context = { response: res, method: 'GET' } as unknown as HttpContext
    expect(respond({ context, verdict: { reason: 'limited' } as Verdict } as Refused<unknown>)).toBe('proceed')
    serve(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false })
  request.on('error', () => {})
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

test('a throttled response keeps the order and encoding of all writes, and calls their callbacks', async () => {
  const called: string[] = []
  const response = await ask(100, 5, (_req, res) => {
    res.write('aä', () => called.push('first'))
    res.write('62', 'hex', () => called.push('second'))
    res.write(new Uint8Array([99]))
    res.write(Buffer.from('d'))
    res.write('')
    res.on('finish', () => called.push('finish'))
    res.end('öe', 'utf8', () => called.push('end'))
  })
  expect(await textOf(response)).toBe('aäbcdöe')
  expect(called.slice(0, 2)).toEqual(['first', 'second'])
  expect(called.slice(2).sort()).toEqual(['end', 'finish'])
})

test('in a throttled response, write reports when to wait, and drain when to continue', async () => {
  const seen: unknown[] = []
  const response = await ask(1000, 100, (_req, res) => {
    seen.push(res.write('x'.repeat(100)), res.write('y'.repeat(200)))
    const startedAt = performance.now()
    res.once('drain', () => {
      seen.push(Math.round((performance.now() - startedAt) / 100))
      res.end()
    })
  })
  expect(await textOf(response)).toHaveLength(300)
  // The last 50 bytes leave 150 ms after the first.
  expect(seen.slice(0, 2)).toEqual([true, false])
  expect(seen[2]).toBeGreaterThanOrEqual(1)
})

test('the rate of a throttled response holds over time, with late timers', async () => {
  let startedAt = 0
  const response = await ask(200_000, 0, (_req, res) => {
    startedAt = performance.now()
    res.end(Buffer.alloc(150_000))
  })
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    // A slice of 50 ms at the start, and one to catch up with.
    expect(bytes).toBeLessThanOrEqual(((performance.now() - startedAt) / 1000) * 200_000 + 30_000)
  }
  expect(bytes).toBe(150_000)
  expect(performance.now() - startedAt).toBeGreaterThan(640)
  expect(performance.now() - startedAt).toBeLessThan(15_000)
})

test('a throttled response waits for a client that reads slower than the rate', async () => {
  let written = 0
  const response = await ask(50_000_000, 0, (_req, res) => {
    const piece = Buffer.alloc(1_000_000)
    const more = () => {
      do written += piece.length
      while (written < 400_000_000 && res.write(piece))
    }
    res.on('drain', more)
    more()
  })
  response.pause()
  // As much as the sockets buffer, and no more.
  let then = -1
  await expect
    .poll(
      () => {
        const isSame = written === then
        then = written
        return isSame
      },
      { interval: 300 },
    )
    .toBe(true)
  expect(written).toBeLessThan(60_000_000)
  response.destroy()
})

test("a throttled response has Node's errors: writing after the end, ending twice, writing a number", async () => {
  const seen: unknown[] = []
  const response = await ask(1000, 0, (_req, res) => {
    expect(() => res.write(5 as never)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }))
    res.on('error', (error: NodeJS.ErrnoException) => seen.push(error.code))
    res.end('x'.repeat(200))
    res.write('late', (error) => seen.push((error as NodeJS.ErrnoException).code))
    res.end(((error: NodeJS.ErrnoException) => seen.push(error.code)) as never)
  })
  expect(await textOf(response)).toBe('x'.repeat(200))
  expect(seen.sort()).toEqual([
    'ERR_STREAM_ALREADY_FINISHED',
    'ERR_STREAM_WRITE_AFTER_END',
    'ERR_STREAM_WRITE_AFTER_END',
  ])
})

test('a client that leaves a throttled response ends its timer, and pending callbacks are called', async () => {
  const seen: unknown[] = []
  const response = await ask(100, 0, (_req, res) => {
    res.write('x'.repeat(1000), (error) => seen.push((error as NodeJS.ErrnoException)?.code))
    res.on('close', () => seen.push('close'))
  })
  response.once('error', () => {})
  response.destroy()
  await expect.poll(() => seen.length).toBe(2)
  expect(seen.sort()).toEqual(['ERR_STREAM_DESTROYED', 'close'])
  // Timers of sockets and polls do not count here.
  expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length).toBeLessThanOrEqual(2)
})
