import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { TrafficFilter } from '../../packages/console/src/traffic/answers.js'
import { isRefusal } from '../../packages/console/src/traffic/decisions.js'
import { topOf } from '../../packages/console/src/traffic/tops.js'
import { type Field, policyNames, TABLES, TrafficCounts } from '../../packages/console/src/traffic/traffic-counts.js'
import { clientsIn, countsIn, textOf } from '../../packages/console/src/traffic/traffic-text.js'
import { byEffort } from '../support/effort.js'

interface Request {
  /** Names of policies, one a line. */
  readonly policy: string
  readonly reason: string
  readonly path: string
  readonly clients: readonly { readonly client: string; readonly network: string }[]
  readonly count: number
}

/** Names that an attacker chooses: of JSON, of markup, of other fields, with separators, very long. */
const hostile = fc.oneof(
  fc.constantFrom(
    '',
    '["a","b"]',
    '","',
    '\n',
    '__proto__',
    '<img src=x onerror=alert(1)>',
    '\ud800',
    '1',
    'x'.repeat(512),
  ),
  fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\u0000', '')),
)
/** Few that come often, and many that come once. */
const skewed = (few: number, many: number) =>
  fc.oneof({ weight: 3, arbitrary: fc.nat(few - 1) }, { weight: 1, arbitrary: fc.nat(many - 1) })

const requests: fc.Arbitrary<Request> = fc.record({
  policy: fc.oneof(fc.constantFrom('api', 'login', 'api\nlogin', 'uploads\nlogin'), hostile),
  reason: fc.constantFrom('admitted', 'limited', 'banned', 'left', 'reported:limited'),
  path: fc.oneof(
    skewed(3, 5000).map((n) => `/p${n}`),
    hostile,
  ),
  clients: fc.uniqueArray(
    fc.oneof(
      skewed(5, 100_000).map((n) => ({ client: `ip=${n}`, network: `net ${n % 7}` })),
      hostile.map((text) => ({ client: `user=${text}`, network: '' })),
    ),
    { maxLength: 2, selector: ({ client }) => client },
  ),
  count: fc.integer({ min: 1, max: 50 }),
})

const filters: fc.Arbitrary<TrafficFilter> = fc.record(
  {
    policy: fc.constantFrom('api', 'login'),
    reason: fc.constantFrom('limited', 'admitted', 'reported:limited', 'refused'),
    path: fc.constantFrom('/p0', '/p1', '__proto__'),
    network: fc.constantFrom('net 0', 'net 3'),
    client: fc.constantFrom('id of ip=0', 'id of ip=3', 'id of user=__proto__'),
  },
  { requiredKeys: [] },
)

const FIELDS: readonly Field[] = ['policy', 'reason', 'path', 'network', 'client']

/** Exact sums of a field, one entry for each value. */
function oracle(all: readonly Request[], field: Field, filter: TrafficFilter) {
  const sums = new Map<string, { decisions: number; refused: number }>()
  for (const { policy, reason, path, clients, count } of all) {
    const isOfClients = [field, ...Object.keys(filter)].some((name) => name === 'client' || name === 'network')
    const given = isOfClients ? clients : [{ client: '', network: '' }]
    for (const { client, network } of given) {
      const reasons = isRefusal(reason) ? [reason, 'refused'] : [reason]
      const policies = policy.split('\n')
      const row = { policy: policies, reason: reasons, path: [path], network: [network], client: [`id of ${client}`] }
      const isMatch = FIELDS.every((name) => {
        const wanted = filter[name as keyof TrafficFilter]
        return wanted === undefined || row[name as keyof typeof row].includes(wanted)
      })
      for (const value of field === 'reason' ? [reason] : row[field as keyof typeof row]) {
        if (!isMatch || value === '') continue
        const sum = sums.get(value) ?? { decisions: 0, refused: 0 }
        sums.set(value, sum)
        sum.decisions += count
        if (isRefusal(reason)) sum.refused += count
      }
    }
  }
  return sums
}

/** Written, read and merged as several processes and a console do it. */
function merged(processes: readonly (readonly Request[])[], kept: number): TrafficCounts {
  const sum = new TrafficCounts(4 * kept)
  for (const own of processes) {
    const counts = new TrafficCounts(kept)
    for (const { policy, reason, path, clients, count } of own) {
      counts.add({ policy, reason, path, refused: isRefusal(reason) ? '1' : '' }, clients, count)
    }
    for (const table of counts.tables) expect(table.entries.size).toBeLessThanOrEqual(2 * kept)
    const part = counts.largest()
    const text = textOf(part, new Map(clientsIn(part).map((client) => [client, `id of ${client}`])))
    expect(text.length).toBeLessThanOrEqual(16_384)
    const read = countsIn(text)
    if (!read) throw new Error('unreadable')
    sum.merge(read)
  }
  for (const table of sum.tables) expect(table.entries.size).toBeLessThanOrEqual(8 * kept)
  return sum
}

test('whatever an attacker sends, no count of any filter is too high, nor lower than its error says, over several processes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(requests, { maxLength: 120 }), { minLength: 1, maxLength: 4 }),
      filters,
      fc.constantFrom(4, 16, 256),
      fc.constantFrom('decisions' as const, 'refused' as const),
      (processes, filter, kept, by) => {
        const counts = merged(processes, kept)
        const all = processes.flat()
        expect(counts.decisions).toBe(all.reduce((sum, { count }) => sum + count, 0))
        for (const field of FIELDS) {
          const exact = oracle(all, field, filter)
          const { entries, error } = topOf(counts, field, { by, top: 50, filter })
          const shown = new Map(entries.map((entry) => [entry.value, entry]))
          for (const { value, ...entry } of entries) {
            const real = exact.get(value)
            for (const name of ['decisions', 'refused'] as const) {
              expect(entry[name]).toBeLessThanOrEqual(real?.[name] ?? 0)
              expect(entry[name] + error).toBeGreaterThanOrEqual(real?.[name] ?? 0)
            }
          }
          const least = entries.length < 50 ? 0 : (entries.at(-1)?.[by] ?? 0)
          for (const [value, real] of exact) {
            if (!shown.has(value)) expect(real[by]).toBeLessThanOrEqual(least + error)
          }
        }
      },
    ),
    { numRuns: byEffort({ usual: 100, full: 2000 }) },
  )
})

test('few names are counted exactly', () => {
  const own: Request[] = Array.from({ length: 500 }, (_, n) => ({
    policy: `policy ${n % 5}`,
    reason: n % 3 === 0 ? 'limited' : 'admitted',
    path: `/p${n % 4}`,
    clients: [{ client: `ip=${n % 10}`, network: `net ${n % 2}` }],
    count: 1,
  }))
  const counts = merged([own, own], 256)
  for (const field of FIELDS) {
    const { entries, error } = topOf(counts, field, { by: 'decisions', top: 50, filter: { policy: 'policy 1' } })
    expect(error).toBe(0)
    const exact = oracle([...own, ...own], field, { policy: 'policy 1' })
    expect(new Map(entries.map(({ value, ...entry }) => [value, entry]))).toEqual(exact)
  }
})

test('decisions by however many policies, with names of any length, are counted for the first of them', () => {
  const name = fc.integer({ min: 1, max: 1500 }).chain((length) => fc.constant('p'.repeat(length)))
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 60 }), (parts) => {
      const names = parts.map((part, i) => `${i}${part}`)
      const counts = new TrafficCounts()
      counts.add({ policy: policyNames.join(names), reason: 'limited', path: '/', refused: '1' }, [], 3)
      const read = countsIn(textOf(counts, new Map()))
      expect(read).toMatchObject({ decisions: 3, refused: 3 })
      const { entries } = topOf(Object.assign(new TrafficCounts(), read), 'policy', {
        by: 'decisions',
        top: 50,
        filter: {},
      })
      const shown = entries.map(({ value }) => value)
      expect(shown.length).toBeGreaterThan(0)
      expect(names).toEqual(expect.arrayContaining(shown))
      if (names.join().length <= 4096) expect(shown.toSorted()).toEqual(names.slice(0, 50).toSorted())
    }),
  )
})

test('a million clients that come once do not hide one that comes often', () => {
  const counts = new TrafficCounts()
  for (let n = 0; n < 100_000; n++) {
    const client = n % 50 === 0 ? 'ip=often' : `ip=${n}`
    counts.add({ policy: 'api', reason: 'admitted', path: `/${n}`, refused: '' }, [{ client, network: 'net' }], 1)
  }
  const { entries, error } = topOf(counts, 'client', { by: 'decisions', top: 1, filter: {} })
  expect(entries).toMatchObject([{ value: 'ip=often' }])
  expect(entries[0]?.decisions).toBeLessThanOrEqual(2000)
  expect((entries[0]?.decisions ?? 0) + error).toBeGreaterThanOrEqual(2000)
  expect(error).toBeLessThanOrEqual((2 * 100_000) / 257)
  expect(TABLES).toHaveLength(counts.tables.length)
})

test.each([
  '',
  'null',
  '[]',
  '[2,1,1,[],[]]',
  '[1,-1,0,[],[]]',
  '[1,1,0,["a"],[[1,0,[[9,9,1]]],[1,0,[]],[1,0,[]],[1,0,[]],[1,0,[]],[1,0,[]],[1,0,[]]]]',
  '{"__proto__":1}',
  `[1,1,0,["${'x'.repeat(4100)}"],[]]`,
])('a text in Redis that is not ours is left out: %s', (text) => {
  expect(countsIn(text)).toBeUndefined()
})
