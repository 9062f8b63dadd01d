// Deep: takes minutes.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { Lane } from './lane.js'
import { allMutants, luaOf, type Mutant, mutantsOf, scriptsWith } from './mutants.js'
import { survivors } from './survivors.js'

/** The sample of mutants; `npm run mutate` tries all. */
const SEED = Number(process.env.SLUICE_SEED ?? 1)
const SAMPLE = 10

const known = survivors.flatMap(({ mutants }) => mutants)

describe('the checks notice mistakes in the Lua', () => {
  let lane: Lane
  beforeAll(async () => {
    lane = await Lane.open()
  })
  afterAll(() => lane.close())

  test.each(sample(SAMPLE))('a check notices the mutant $id', async (mutant) => {
    expect((await lane.tryOn(mutant)).by, `noticed with seed ${SEED}`).toBeTypeOf('string')
  })

  test('a check notices an endless script, and the next mutant is tried on a new server', async () => {
    const [mutant] = allMutants() as [Mutant]
    const endless = { ...mutant, file: 'kernels/clock', source: `${luaOf('kernels/clock')}\nwhile true do end\n` }
    // A store on a busy machine may only report that it is not available.
    expect((await lane.tryOn(endless)).failure).toMatch(/no answer|not available/)
    const wrong = allMutants().find(({ id }) => id.startsWith('cells/counter.lua') && id.endsWith('<= to <')) as Mutant
    expect((await lane.tryOn(wrong)).failure).not.toMatch(/no answer|not available|BUSY/)
  })

  test('a change without an effect passes every check', async () => {
    const [mutant] = allMutants() as [Mutant]
    const same = { ...mutant, file: 'kernels/clock', source: `${luaOf('kernels/clock')}\nlocal unused = 1\n` }
    expect(await lane.tryOn(same)).toMatchObject({ by: undefined, failure: '' })
  })
})

describe('survivors.json', () => {
  test('each mutant that is known to survive is listed once, with a reason', () => {
    expect(new Set(known).size).toBe(known.length)
    for (const { reason } of survivors) expect(reason).toMatch(/^(Changes nothing|Costs .*|Never happens): .{20,}\.$/)
  })

  test('each mutant that is known to survive exists in the Lua', () => {
    const ids = new Set(allMutants().map(({ id }) => id))
    const missing = known.filter((id) => !ids.has(id))
    expect(missing, 'the Lua has changed: run npm run mutate, and sort its findings').toEqual([])
  })
})

describe('mutants', () => {
  test.each(['kernels/clock', 'cells/bucket', 'cells/counter', 'cells/log', 'cells/segments'])(
    'a mutant of %s is in the composed script and in one for a single kind',
    (file) => {
      const originals = scriptsWith()
      const [mutant] = mutantsOf(file, luaOf(file) ?? '')
      const changed = Object.entries(scriptsWith(mutant)).filter(([name, text]) => text !== originals[name])
      expect(changed.map(([name]) => name)).toEqual(
        expect.arrayContaining(['decide', expect.stringMatching(/^decide-/)]),
      )
    },
  )

  const changes = (source: string) =>
    mutantsOf('a', source).map(({ change, source: changed }) => `${change}: ${changed.trim()}`)

  test('mutants flip comparisons', () => {
    expect(changes('x = a < b')).toEqual(['< to <=: x = a <= b', '< to >=: x = a >= b'])
    expect(changes('x = a ~= b')).toEqual(['~= to ==: x = a == b'])
  })

  test('mutants swap arithmetic and rounding, and remove signs', () => {
    expect(changes('x = floor(a + b) * -c')).toEqual([
      'floor to ceil: x = ceil(a + b) * -c',
      '+ to -: x = floor(a - b) * -c',
      '* to /: x = floor(a + b) / -c',
      '-c to c: x = floor(a + b) * c',
    ])
    expect(changes('local min, max = math.min, math.max')).toEqual([])
  })

  test('mutants change results, and negate conditions', () => {
    expect(changes('if known then return 0 end')).toEqual([
      'known to its opposite: if not (known) then return 0 end',
      '0 to 1: if known then return 1 end',
    ])
    expect(changes('if not a then return -1 end')).toEqual([
      'not a to its opposite: if not (not a) then return -1 end',
      'not a to a: if a then return -1 end',
      '-1 to 1: if not a then return 1 end',
    ])
  })

  test('mutants leave out commands and expiries', () => {
    expect(changes("if a then call('SET', key, f(b), 'PX', g(c)) end")).toEqual([
      "a to its opposite: if not (a) then call('SET', key, f(b), 'PX', g(c)) end",
      "call('SET', key, f(b), 'PX', g(c)) left out: if a then do end end",
      ", 'PX', g(c) left out: if a then call('SET', key, f(b)) end",
    ])
  })

  test('mutants leave comments and texts unchanged', () => {
    expect(changes("-- a < b\nx = 'a < b' -- + 1")).toEqual([])
  })

  test('mutants have unique names, which remain when lines move', () => {
    const names = (source: string) => mutantsOf('a', source).map(({ id }) => id)
    const source = 'x = a + b\nx = a + b\n'
    expect(names(source)).toEqual(['a.lua | x = a + b | + to -', 'a.lua | x = a + b | + to - | 2'])
    expect(names(`-- new\n\n${source}`)).toEqual(names(source))
    const all = allMutants().map(({ id }) => id)
    expect(new Set(all).size).toBe(all.length)
  })
})

/** A sample of the mutants that must be noticed, with the same share of every file. */
function sample(count: number): Mutant[] {
  const random = randomFrom(SEED)
  const all = allMutants().filter(({ id }) => !known.includes(id))
  const step = all.length / count
  return Array.from({ length: count }, (_, i) => all[Math.floor(i * step + random(Math.floor(step)))] as Mutant)
}
