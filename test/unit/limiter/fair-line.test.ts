import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FairLine, type Turn } from '../../../packages/core/src/limiter/fair-line.js'

let clock = 0
const turnOf = (client: string | undefined, { cost = 1, headStartMs = 0 } = {}): Turn => ({
  client,
  cost,
  headStartMs,
  since: ++clock - headStartMs,
  wake: undefined,
  isDisplaced: false,
})

function lineOf(...turns: Turn[]) {
  const line = new FairLine()
  for (const turn of turns) line.add(turn)
  return line
}

/** Serves one after the other until the line is empty. */
function served(line: FairLine): Turn[] {
  const order: Turn[] = []
  for (let first = line.first; first; first = line.first) {
    order.push(first)
    line.remove(first, true)
  }
  return order
}
const clients = (turns: readonly Turn[]) => turns.map(({ client }) => client ?? '-').join('')

test('one who comes after twenty of another is served second', () => {
  const line = lineOf(...Array.from({ length: 20 }, () => turnOf('a')), turnOf('b'))
  expect(clients(served(line))).toBe(`ab${'a'.repeat(19)}`)
})

test('clients take turns by units, not by requests', () => {
  const line = lineOf(
    turnOf('a', { cost: 3 }),
    turnOf('a', { cost: 3 }),
    ...Array.from({ length: 5 }, () => turnOf('b')),
  )
  expect(clients(served(line))).toBe('abbbabb')
})

test('one who comes back does not get what it missed, nor what it has had', () => {
  const line = lineOf(turnOf('a'), turnOf('a'), turnOf('a'), turnOf('b'))
  const order = [line.first as Turn]
  line.remove(order[0] as Turn, true)
  order.push(line.first as Turn)
  line.remove(order[1] as Turn, true)
  expect(clients(order)).toBe('ab')
  // Both have had one: b, that asks again, comes after the a that waits, and not before all of a's.
  line.add(turnOf('b'))
  expect(clients(served(line))).toBe('aba')
})

test('a request that leaves without being served is not charged a turn', () => {
  const leaving = turnOf('b')
  const line = lineOf(turnOf('a'), turnOf('a'), leaving, turnOf('b'))
  line.remove(leaving, false)
  expect(clients(served(line))).toBe('aba')
})

test('higher classes go first; clients take turns within a class', () => {
  const high = { headStartMs: 1_000_000 }
  const line = lineOf(turnOf('a'), turnOf('b'), turnOf('c', high), turnOf('c', high), turnOf('d', high))
  expect(clients(served(line))).toBe('cdcab')
})

test('a full line is left by the newest turn of the client with the most, of no higher class', () => {
  const turns = [
    turnOf('a'),
    turnOf('a'),
    turnOf('a'),
    turnOf('b', { headStartMs: 9 }),
    turnOf('b', { headStartMs: 9 }),
  ]
  const [, , last] = turns
  const line = lineOf(...turns)
  expect(line.displacedBy(turnOf('b'))).toBe(last)
  expect(line.displacedBy(turnOf('c'))).toBe(last)
  expect(line.displacedBy(turnOf('a'))).toBeUndefined()
  expect(line.displacedBy(turnOf(undefined))).toBeUndefined()
  const high = lineOf(...Array.from({ length: 4 }, () => turnOf('a', { headStartMs: 9 })))
  expect(high.displacedBy(turnOf('b'))).toBeUndefined()
  expect(lineOf(turnOf('a'), turnOf('b')).displacedBy(turnOf('c'))).toBeUndefined()
})

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ client: fc.constantFrom('a', 'b', 'c', undefined), cost: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 2, arbitrary: fc.constant('serve' as const) },
  { weight: 1, arbitrary: fc.nat(20) },
)

test('clients that wait all the time never differ by more than their largest costs; each keeps its own order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const line = new FairLine()
      const waiting: Turn[] = []
      // For each pair, what each has been served since both have been waiting.
      const pairs = new Map<string, number>()
      const names = ['a', 'b', 'c', undefined]
      const has = (client: string | undefined) => waiting.some((turn) => turn.client === client)
      for (const one of steps) {
        if (typeof one === 'object') {
          const turn = turnOf(one.client, { cost: one.cost })
          waiting.push(turn)
          line.add(turn)
        } else if (one === 'serve') {
          const turn = line.first
          expect(turn === undefined).toBe(waiting.length === 0)
          if (!turn) continue
          // The first of its client's own.
          expect(waiting.find(({ client }) => client === turn.client)).toBe(turn)
          const through = line.unitsThrough(turn)
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
          line.remove(turn, true)
        } else {
          const turn = waiting[one]
          if (!turn) continue
          waiting.splice(one, 1)
          line.remove(turn, false)
        }
        for (const a of names) for (const b of names) if (!has(a) || !has(b)) pairs.delete(`${a} ${b}`)
        expect(line.length).toBe(waiting.length)
        expect(line.units).toBe(waiting.reduce((sum, { cost }) => sum + cost, 0))
      }
      // What is foreseen comes true.
      const foreseen = new Map(waiting.map((turn) => [turn, line.unitsThrough(turn)]))
      let units = 0
      for (const turn of served(line)) {
        units += turn.cost
        expect(units).toBe(foreseen.get(turn))
      }
    }),
  )
})

test('without clients the order is that of arrival, less head starts', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 3, 10), { maxLength: 20 }), (headStarts) => {
      const turns = headStarts.map((headStartMs) => turnOf(undefined, { headStartMs }))
      const expected = [...turns].sort((a, b) => a.since - b.since)
      expect(served(lineOf(...turns)).map(({ since }) => since)).toEqual(expected.map(({ since }) => since))
    }),
  )
})
