// Runs alone: it fakes the timers of its process.
import { limitedFetch } from '@sluice/fetch'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const DAY_MS = 86_400_000

function serviceThatAsksFor(forMs: number, sent: unknown[]) {
  return limitedFetch(
    async (input) => {
      sent.push(input)
      return sent.length === 1
        ? new Response(null, { status: 429, headers: { 'Retry-After': String(forMs / 1000) } })
        : new Response('ok')
    },
    { maxWait: Number.POSITIVE_INFINITY },
  )
}

test('a hold lasts as long as the service asks for, and little longer', async () => {
  const sent: unknown[] = []
  const api = serviceThatAsksFor(60_000, sent)
  expect((await api('http://service.test/')).status).toBe(429)
  const held = Promise.all([api('http://service.test/'), api('http://service.test/')])
  await vi.advanceTimersByTimeAsync(59_999)
  expect(sent.length).toBe(1)
  await vi.advanceTimersByTimeAsync(7000)
  expect((await held).map(({ status }) => status)).toEqual([200, 200])
})

test('a hold of 30 days does not end at once, though no timer is so long', async () => {
  const sent: unknown[] = []
  const api = serviceThatAsksFor(30 * DAY_MS, sent)
  expect((await api('http://service.test/')).status).toBe(429)
  const abort = new AbortController()
  const held = api('http://service.test/', { signal: abort.signal }).catch(({ name }) => name)
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(sent.length).toBe(1)
  abort.abort()
  expect(await held).toBe('AbortError')
})

test('a date of Retry-After counts from the Date of the response, whatever the clock of the client says', async () => {
  const sentAt: number[] = []
  const api = limitedFetch(async () => {
    sentAt.push(Date.now())
    const headers = { Date: 'Tue, 05 Jan 2021 10:59:00 GMT', 'Retry-After': 'Tue, 05 Jan 2021 10:59:30 GMT' }
    return sentAt.length === 1 ? new Response(null, { status: 503, headers }) : new Response('ok')
  })
  await api('http://service.test/')
  const next = api('http://service.test/')
  await vi.advanceTimersByTimeAsync(60_000)
  await next
  const [first, second] = sentAt as [number, number]
  expect(second - first).toBeGreaterThanOrEqual(30_000)
  expect(second - first).toBeLessThan(35_000)
})

test('without a time, the rate halves once for requests that were refused together, and doubles in half a minute', async () => {
  const sentAt: number[] = []
  let isFull = true
  const api = limitedFetch(async () => {
    const number = sentAt.push(Date.now())
    await new Promise((resolve) => setTimeout(resolve, 10))
    return new Response(null, { status: isFull && number > 20 ? 429 : 200 })
  })
  const burst = Promise.all(Array.from({ length: 40 }, () => api('http://service.test/')))
  await vi.advanceTimersByTimeAsync(100)
  await burst
  isFull = false
  const later = Promise.all(Array.from({ length: 100 }, () => api('http://service.test/')))
  await vi.advanceTimersByTimeAsync(60_000)
  await later
  const gaps = sentAt.slice(41).map((at, i) => at - (sentAt[i + 40] as number))
  // The 21st request within a second was refused: from then on half as many.
  expect(gaps[0]).toBeGreaterThan(80)
  expect(gaps[0]).toBeLessThan(110)
  expect(gaps.at(-1)).toBeLessThan(90)
  expect(Math.min(...gaps)).toBeGreaterThan(40)
})
