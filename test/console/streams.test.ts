// Runs alone: it fakes timers.
import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { FiguresAnswer } from '../../packages/console/src/figures/answers.js'
import { MAX_OF_OPERATOR, MAX_STREAMS, Streams } from '../../packages/console/src/figures/streams.js'
import { Problem } from '../../packages/console/src/problem.js'

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] }),
)
afterEach(() => void vi.useRealTimers())

/** A response as a client reads it: all at once, or never. */
class TestResponse extends Writable {
  readonly chunks: Buffer[] = []
  readonly #isRead: boolean

  constructor(isRead: boolean) {
    super()
    this.#isRead = isRead
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.chunks.push(chunk)
    if (this.#isRead) done()
  }

  get lines(): { readonly type: string; readonly reason?: string }[] {
    return this.chunks.map((chunk) => JSON.parse(chunk.toString()))
  }
}

/** Each answer has some 4 kB. */
const ANSWER = { from: 'process', notes: ['x'.repeat(4000)] } as unknown as FiguresAnswer

function started(read: () => Promise<FiguresAnswer> = async () => ANSWER) {
  let reads = 0
  const streams = new Streams({
    read() {
      reads++
      return read()
    },
    problemOf: () => new Problem(503, 'the store is away'),
    text: JSON.stringify,
  })
  const open = (name = 'ann', { isRead = true, ask = async (): Promise<unknown> => ({}) } = {}) => {
    streams.check({ name, may: 'read' })
    const response = new TestResponse(isRead)
    streams.open(response as unknown as ServerResponse, { name, may: 'read' }, ask)
    return response
  }
  return { streams, open, reads: () => reads }
}

test('of ten thousand listeners a hundred are served, ten of each operator, and the others are told so', () => {
  const { open, reads } = started()
  let served = 0
  let refusal: unknown
  for (let i = 0; i < 10_000; i++) {
    try {
      open(`operator ${Math.floor(i / 20)}`)
      served++
    } catch (error) {
      refusal = error
    }
  }
  expect(refusal).toMatchObject({
    status: 503,
    message: expect.stringMatching(/poll/),
    more: { retryAfterMs: expect.any(Number) },
  })
  expect(served).toBe(MAX_STREAMS)
  expect(MAX_STREAMS / MAX_OF_OPERATOR).toBe(10)
  expect(reads()).toBe(1)
})

test('a stream that is never read is sent little, and ends', async () => {
  const { open } = started()
  const response = open('ann', { isRead: false })
  let most = 0
  for (let s = 0; s < 60 && !response.destroyed; s++) {
    await vi.advanceTimersByTimeAsync(1000)
    most = Math.max(most, response.writableLength)
  }
  expect(response.destroyed).toBe(true)
  expect(most).toBeLessThan(32_768)
  expect(vi.getTimerCount()).toBe(0)
})

test('a stream goes on for an hour, and a tab that opens it again for a day leaves nothing behind', async () => {
  const { open, reads } = started(async () => ({}) as FiguresAnswer)
  for (let hour = 0; hour < 24; hour++) {
    const response = open()
    await vi.advanceTimersByTimeAsync(3_601_000)
    expect(JSON.parse(String(response.chunks.at(-1)))).toMatchObject({ type: 'end', reason: 'time' })
    expect(response.chunks.length).toBeGreaterThan(3500)
    expect(response.destroyed).toBe(true)
  }
  await vi.advanceTimersByTimeAsync(10_000)
  expect(vi.getTimerCount()).toBe(0)
  expect(reads()).toBeLessThanOrEqual(24 * 3601)
})

test('authorize is asked again each minute, and a stream ends once it refuses', async () => {
  const { open } = started()
  let asked = 0
  const ask = async () => {
    if (++asked > 2) throw new Problem(403, 'no')
    return {}
  }
  const response = open('ann', { ask })
  await vi.advanceTimersByTimeAsync(150_000)
  expect(asked).toBe(2)
  expect(response.lines.at(-1)?.type).toBe('figures')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(asked).toBe(3)
  expect(response.lines.at(-1)).toMatchObject({ type: 'end', reason: 'refused' })
})

test('an authorize that never returns is asked once', async () => {
  const { open } = started()
  const ask = vi.fn(() => new Promise(() => {}))
  open('ann', { ask })
  await vi.advanceTimersByTimeAsync(300_000)
  expect(ask).toHaveBeenCalledTimes(1)
})

test('while a read takes long, heartbeats are sent; while reads fail, the problem is, each 10 seconds', async () => {
  const slow = started(() => new Promise(() => {}))
  const waiting = slow.open()
  await vi.advanceTimersByTimeAsync(35_000)
  expect(waiting.lines.map(({ type }) => type)).toEqual(['heartbeat', 'heartbeat', 'heartbeat'])
  expect(slow.reads()).toBe(1)
  const failing = started(async () => {
    throw new Error('gone')
  })
  const told = failing.open()
  await vi.advanceTimersByTimeAsync(35_000)
  expect(told.lines.map(({ type }) => type)).toEqual(['problem', 'problem', 'problem', 'problem'])
})

test('the end of the console ends its streams, and no other begins', async () => {
  const { open, streams } = started()
  const response = open()
  await vi.advanceTimersByTimeAsync(2000)
  streams.close()
  await vi.advanceTimersByTimeAsync(6000)
  expect(response.lines.at(-1)).toMatchObject({ type: 'end', reason: 'closed' })
  expect(() => open()).toThrow(/closed/)
  expect(vi.getTimerCount()).toBe(0)
})
