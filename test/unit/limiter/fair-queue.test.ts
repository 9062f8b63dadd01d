import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FairQueue, type Turn } from '../../../packages/core/src/features/queues/fair-queue.js'

let clock = 0
const turnOf = (client: string | undefined, { cost = 1, headStartMs = 0 } = {}): Turn => ({
  client,
  cost,
  headStartMs,
  since: ++clock - headStartMs,
  wake: undefined,
  isDisplaced: false,
})

function queueOf(...turns: Turn[]) {
  const queue = new FairQueue()
  for (const turn of turns) queue.add(turn)
  return queue
}

/** Serves one after the other until the queue is empty. */
function served(queue: FairQueue): Turn[] {
  const order: Turn[] = []
  for (let first = queue.first; first; first = queue.first) {
    order.push(first)
    queue.remove(first, true)
  }
  return order
}
const clients = (turns: readonly Turn[]) => turns.map(({ client }) => client ?? '-').join('')

test('a client that arrives after twenty turns of another is served second', () => {
  const queue = queueOf(...Array.from({ length: 20 }, () => turnOf('a')), turnOf('b'))
  expect(clients(served(queue))).toBe(`ab${'a'.repeat(19)}`)
})

test('clients take turns by units, not by requests', () => {
  const queue = queueOf(
    turnOf('a', { cost: 3 }),
    turnOf('a', { cost: 3 }),
    ...Array.from({ length: 5 }, () => turnOf('b')),
  )
  expect(clients(served(queue))).toBe('abbbabb')
})

test('a client that returns gets neither the turns it missed nor a second first turn', () => {
  const queue = queueOf(turnOf('a'), turnOf('a'), turnOf('a'), turnOf('b'))
  const order = [queue.first as Turn]
  queue.remove(order[0] as Turn, true)
  order.push(queue.first as Turn)
  queue.remove(order[1] as Turn, true)
  expect(clients(order)).toBe('ab')
  // Each has had one: b's next turn comes after the waiting a, but before the rest of a's.
  queue.add(turnOf('b'))
  expect(clients(served(queue))).toBe('aba')
})

test('a turn that leaves unserved is not charged to its client', () => {
  const leaving = turnOf('b')
  const queue = queueOf(turnOf('a'), turnOf('a'), leaving, turnOf('b'))
  queue.remove(leaving, false)
  expect(clients(served(queue))).toBe('aba')
})

test('higher priorities go first, and clients take turns within a priority', () => {
  const high = { headStartMs: 1_000_000 }
  const queue = queueOf(turnOf('a'), turnOf('b'), turnOf('c', high), turnOf('c', high), turnOf('d', high))
  expect(clients(served(queue))).toBe('cdcab')
})

test('a full queue drops the newest turn of the client with the most, unless its priority is higher', () => {
  const turns = [
    turnOf('a'),
    turnOf('a'),
    turnOf('a'),
    turnOf('b', { headStartMs: 9 }),
    turnOf('b', { headStartMs: 9 }),
  ]
  const [, , last] = turns
  const queue = queueOf(...turns)
  expect(queue.displacedBy(turnOf('b'))).toBe(last)
  expect(queue.displacedBy(turnOf('c'))).toBe(last)
  expect(queue.displacedBy(turnOf('a'))).toBeUndefined()
  expect(queue.displacedBy(turnOf(undefined))).toBeUndefined()
  const high = queueOf(...Array.from({ length: 4 }, () => turnOf('a', { headStartMs: 9 })))
  expect(high.displacedBy(turnOf('b'))).toBeUndefined()
  expect(queueOf(turnOf('a'), turnOf('b')).displacedBy(turnOf('c'))).toBeUndefined()
})

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ client: fc.constantFrom('a', 'b', 'c', undefined), cost: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 2, arbitrary: fc.constant('serve' as const) },
  { weight: 1, arbitrary: fc.nat(20) },
)

test('waiting clients never differ by more than their largest costs, and each keeps its own order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new FairQueue()
      const waiting: Turn[] = []
      // For each pair, the units served to each since both have been waiting.
      const pairs = new Map<string, number>()
      const names = ['a', 'b', 'c', undefined]
      const has = (client: string | undefined) => waiting.some((turn) => turn.client === client)
      for (const one of steps) {
        if (typeof one === 'object') {
          const turn = turnOf(one.client, { cost: one.cost })
          waiting.push(turn)
          queue.add(turn)
        } else if (one === 'serve') {
          const turn = queue.first
          expect(turn === undefined).toBe(waiting.length === 0)
          if (!turn) continue
          // The first turn of its client.
          expect(waiting.find(({ client }) => client === turn.client)).toBe(turn)
          const through = queue.unitsThrough(turn)
          expect(through).toBe(turn.cost)
          for (const other of names) {
            if (other === turn.client || !has(other)) continue
            const key = `${turn.client} ${other}`
            const back = `${other} ${turn.client}`
            pairs.set(key, (pairs.get(key) ?? 0) + turn.cost)
            pairs.set(back, (pairs.get(back) ?? 0) - turn.cost)
            expect(Math.abs(pairs.get(key) as number)).toBeLessThanOrEqual(10)
          }
          waiting.splice(waiting.indexOf(turn), 1)
          queue.remove(turn, true)
        } else {
          const turn = waiting[one]
          if (!turn) continue
          waiting.splice(one, 1)
          queue.remove(turn, false)
        }
        for (const a of names) for (const b of names) if (!has(a) || !has(b)) pairs.delete(`${a} ${b}`)
        expect(queue.length).toBe(waiting.length)
        expect(queue.units).toBe(waiting.reduce((sum, { cost }) => sum + cost, 0))
      }
      // Predictions hold.
      const predicted = new Map(waiting.map((turn) => [turn, queue.unitsThrough(turn)]))
      let units = 0
      for (const turn of served(queue)) {
        units += turn.cost
        expect(units).toBe(predicted.get(turn))
      }
    }),
  )
})

test('unitsThrough predicts the order, also over priorities and for turns that arrived before they joined', () => {
  const arrival = fc.record({
    client: fc.constantFrom('a', 'b', 'c', undefined),
    cost: fc.integer({ min: 1, max: 5 }),
    headStartMs: fc.constantFrom(0, 3, 10),
    earlierMs: fc.constantFrom(0, 0, 7.5),
  })
  fc.assert(
    fc.property(fc.array(fc.oneof(arrival, fc.constant('serve' as const), fc.nat(20)), { maxLength: 40 }), (steps) => {
      const queue = new FairQueue()
      const waiting: Turn[] = []
      const leave = (turn: Turn | undefined, isServed: boolean) => {
        if (!turn) return
        waiting.splice(waiting.indexOf(turn), 1)
        queue.remove(turn, isServed)
      }
      for (const one of steps) {
        if (one === 'serve') leave(queue.first, true)
        else if (typeof one === 'number') leave(waiting[one], false)
        else {
          const turn = turnOf(one.client, one)
          waiting.push({ ...turn, since: turn.since - one.earlierMs })
          queue.add(waiting.at(-1) as Turn)
        }
      }
      const predicted = new Map(waiting.map((turn) => [turn, queue.unitsThrough(turn)]))
      let units = 0
      for (const turn of served(queue)) {
        units += turn.cost
        expect(units).toBe(predicted.get(turn))
      }
      expect(queue).toMatchObject({ length: 0, units: 0 })
    }),
  )
})

test.each([
  ['one client', () => undefined, () => 0],
  ['a client each', (i: number) => `client ${i}`, () => 0],
  ['clients in ten classes', (i: number) => `client ${i % 97}`, (i: number) => i % 10],
  ['a class each', () => undefined, (i: number) => 2 * i],
])('with 10,000 turns, joining or leaving looks at fewer than 500: %s', (_, client, headStartMs) => {
  let looks = 0
  const looked = <T>(value: T): T => {
    looks++
    return value
  }
  const watched = (i: number): Turn => {
    const turn = turnOf(client(i), { headStartMs: headStartMs(i) })
    const { since, cost } = turn
    return Object.defineProperties(turn, { since: { get: () => looked(since) }, cost: { get: () => looked(cost) } })
  }
  const turns = Array.from({ length: 10_000 }, (_, i) => watched(i))
  const queue = queueOf(...turns)
  const looksFor = (step: () => void) => {
    looks = 0
    step()
    queue.classes(16)
    expect(looks).toBeLessThan(500)
  }
  for (const i of [9_999, 5_000, 1, 0]) looksFor(() => queue.remove(turns[i] as Turn, i === 0))
  for (let i = 0; i < 10; i++) {
    const newcomer = watched(10_000 + i)
    looksFor(() => queue.add(newcomer))
    expect(queue.units).toBe(9_997 + i)
  }
  for (let i = 0; i < 10; i++) looksFor(() => queue.remove(queue.first as Turn, true))
})

test('without clients the order is that of arrival less head starts', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 3, 10), { maxLength: 20 }), (headStarts) => {
      const turns = headStarts.map((headStartMs) => turnOf(undefined, { headStartMs }))
      const expected = [...turns].sort((a, b) => a.since - b.since)
      expect(served(queueOf(...turns)).map(({ since }) => since)).toEqual(expected.map(({ since }) => since))
    }),
  )
})
