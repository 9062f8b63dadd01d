// Runs alone: it fakes the clock of its process.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { events, type OutboundEvent } from '@sluice/core'
import { createTurns, limitedFetch } from '@sluice/fetch'
import { limited } from '@sluice/fetch/undici'
import fc from 'fast-check'
import { Agent, request } from 'undici'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const open = closedAfterEach()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const URL_OF_SERVICE = 'http://service.test/path?token=secret'

/** A prime: no product of it and a count is a tie. */
const CHANCES = 1009
const chance = fc.integer({ min: 0, max: CHANCES - 1 })

type Ending = 'ok' | 'not found' | 'failure' | 'no response' | 'too slow' | 'caller left'

/** How a request ends, and whether it counts and as what. */
const ENDINGS: Record<Ending, { counts: boolean; isAccepted: boolean }> = {
  ok: { counts: true, isAccepted: true },
  'not found': { counts: true, isAccepted: true },
  failure: { counts: true, isAccepted: false },
  'no response': { counts: true, isAccepted: false },
  'too slow': { counts: true, isAccepted: false },
  'caller left': { counts: false, isAccepted: false },
}

/** A `fetch` whose requests end as they are told to. */
function serviceOf(next: () => { ending: Ending; abort: AbortController }): typeof fetch {
  return async () => {
    const { ending, abort } = next()
    switch (ending) {
      case 'ok':
        return new Response('ok')
      case 'not found':
        return new Response(null, { status: 404 })
      case 'failure':
        return new Response(null, { status: 500 })
      case 'no response':
        throw new TypeError('fetch failed')
      case 'too slow':
        abort.abort(new DOMException('too slow', 'TimeoutError'))
        throw abort.signal.reason
      case 'caller left':
        abort.abort(new Error('the user closed the page'))
        throw abort.signal.reason
    }
  }
}

test('a request is kept back by the formula, whatever the service does', async () => {
  const step = fc.record({
    // Most come together, some after a while.
    afterMs: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 1, max: 130_000 })),
    ending: fc.constantFrom(...(Object.keys(ENDINGS) as Ending[])),
    random: chance,
  })
  const runs = fc.array(step, { minLength: 20, maxLength: 120 })
  await fc.assert(
    fc.asyncProperty(runs, fc.constantFrom(true, 1, 2, 3), async (steps, circuit) => {
      const k = circuit === true ? 2 : circuit
      let current = { ending: 'ok' as Ending, abort: new AbortController() }
      let reached = 0
      const service = serviceOf(() => {
        reached++
        return current
      })
      const api = limitedFetch(service, { circuit })
      const past: { slot: number; isAccepted: boolean }[] = []
      for (const { afterMs, ending, random } of steps) {
        vi.advanceTimersByTime(afterMs)
        const slot = Math.floor(performance.now() / 10_000)
        const recent = past.filter((one) => one.slot > slot - 12)
        const accepts = recent.filter(({ isAccepted }) => isAccepted).length
        const isSent = random * (recent.length + 1) >= CHANCES * (recent.length - 5 - Number(k) * accepts)
        vi.spyOn(Math, 'random').mockReturnValue(random / CHANCES)
        current = { ending, abort: new AbortController() }
        const before = reached
        const error = await api(URL_OF_SERVICE, { signal: current.abort.signal }).then(
          () => undefined,
          (reason) => reason as Error & { code?: string },
        )
        expect(reached - before).toBe(isSent ? 1 : 0)
        expect(error?.code === 'CIRCUIT_OPEN').toBe(!isSent)
        const { counts, isAccepted } = ENDINGS[ending]
        if (!isSent || counts) past.push({ slot, isAccepted: isSent && isAccepted })
      }
    }),
    { numRuns: 60 },
  )
})

/** A server that fails until it is told otherwise. */
async function startFailing() {
  const state = { isFailing: true, requests: 0, url: '' }
  const server = createServer((_request, response) => {
    state.requests++
    response.writeHead(state.isFailing ? 500 : 200).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
}

const never = () => vi.spyOn(Math, 'random').mockReturnValue(0)

test('a service that fails gets few requests, and all of them once it works again', async () => {
  const service = await startFailing()
  const api = limitedFetch(fetch, { circuit: true })
  const send = () =>
    api(service.url).then(
      ({ status }) => status,
      ({ code }) => code,
    )
  for (let i = 0; i < 300; i++) await send()
  // About 28 of them, by the formula.
  expect(service.requests).toBeGreaterThan(5)
  expect(service.requests).toBeLessThan(100)
  service.isFailing = false
  vi.advanceTimersByTime(120_000)
  expect(await Promise.all(Array.from({ length: 50 }, send))).toEqual(Array(50).fill(200))
})

test('without the option, every request is sent', async () => {
  const service = await startFailing()
  never()
  const api = limitedFetch(fetch)
  for (let i = 0; i < 30; i++) await api(service.url)
  expect(service.requests).toBe(30)
})

test('each origin has a circuit of its own, also where a key counts them together', async () => {
  never()
  const sent: string[] = []
  const api = limitedFetch(
    async (input) => {
      sent.push(String(input))
      return new Response(null, { status: String(input).includes('bad') ? 502 : 200 })
    },
    { key: 'both', circuit: true },
  )
  for (let i = 0; i < 10; i++) {
    await api('http://bad.test/').catch(() => {})
    await api('http://good.test/')
  }
  expect(sent.filter((url) => url === 'http://bad.test/').length).toBe(6)
  expect(sent.filter((url) => url === 'http://good.test/').length).toBe(10)
})

test('a request that is kept back says why, without the path, and is announced', async () => {
  never()
  const outcomes: string[] = []
  open.push(events.on('outbound', ({ policy, outcome }: OutboundEvent) => policy === 'mail' && outcomes.push(outcome)))
  const api = limitedFetch(async () => Promise.reject(new TypeError('fetch failed')), { name: 'mail', circuit: true })
  for (let i = 0; i < 6; i++) await api(URL_OF_SERVICE).catch(() => {})
  await expect(api(URL_OF_SERVICE)).rejects.toMatchObject({
    name: 'SluiceError',
    code: 'CIRCUIT_OPEN',
    message: 'policy "mail": fetch of http://service.test: the service fails: of 7 requests in 2 minutes, 0 succeeded',
  })
  expect(outcomes).toEqual([...Array(6).fill('failed'), 'unsent'])
})

test('where a retry is kept back, the caller gets the refusal', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.99)
  let sent = 0
  const api = limitedFetch(
    async () => {
      if (++sent <= 6) return new Response(null, { status: 500 })
      random.mockReturnValue(0)
      return new Response('busy', { status: 429, headers: { 'Retry-After': '60' } })
    },
    { circuit: 1, retry: { attempts: 10 } },
  )
  for (let i = 0; i < 6; i++) await api(URL_OF_SERVICE)
  const response = await api(URL_OF_SERVICE)
  expect([response.status, await response.text()]).toEqual([429, 'busy'])
  expect(sent).toBe(7)
})

test('an interceptor of undici keeps requests back, and those that a caller aborts do not count', async () => {
  const service = await startFailing()
  const dispatcher = new Agent().compose(limited({ circuit: true }))
  open.push(() => dispatcher.close())
  const send = () => request(service.url, { dispatcher })
  never()
  for (let i = 0; i < 6; i++) await (await send()).body.dump()
  await expect(send()).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
  expect(service.requests).toBe(6)

  let arrived = () => {}
  const hanging = createServer(() => arrived())
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    hanging.closeAllConnections()
    hanging.close()
  })
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`
  for (let i = 0; i < 12; i++) {
    const abort = new AbortController()
    arrived = () => abort.abort()
    await expect(request(url, { dispatcher, signal: abort.signal })).rejects.toMatchObject({ name: 'AbortError' })
  }
})

test('turns of any client are kept back by what it says of its responses', async () => {
  never()
  const turns = createTurns({ circuit: true })
  const url = new URL(URL_OF_SERVICE)
  for (let i = 0; i < 3; i++) (await turns.take({ url })).failed()
  for (let i = 0; i < 3; i++) await (await turns.take({ url })).answered({ status: 503, headers: {} })
  await expect(turns.take({ url })).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
})

test('turns whose caller has left do not count', async () => {
  never()
  const turns = createTurns({ circuit: true })
  for (let i = 0; i < 12; i++) {
    const abort = new AbortController()
    const turn = await turns.take({ url: new URL(URL_OF_SERVICE) }, abort.signal)
    abort.abort()
    turn.failed()
  }
})

test.each([0.5, 101, Number.NaN, '2', null])('circuit: %s is no circuit', (circuit) => {
  expect(() => limitedFetch(fetch, { circuit: circuit as never })).toThrow(
    'policy "fetch": circuit: expected true, false or a number from 1 to 100',
  )
})
