import { describe, expect, test } from 'vitest'
import { optimise } from '../src/index.js'
import { printLua } from '../src/tree/print.js'

/** An optimised script, line by line. */
const optimised = (source: string, known = {}) => optimise(source, known).trimEnd().split('\n')

describe('calls', () => {
  test('of functions that are one expression become that expression', () => {
    expect(optimised('local function twice(x) return 2 * (x + 1) end\nreturn twice(KEYS[1]) - twice(3)')).toEqual([
      'return 2 * (KEYS[1] + 1) - 8',
    ])
  })

  test('become what the function does, with what follows an early return in its else', () => {
    const source = `
      local function wait(cost, limit)
        if cost > limit then return -1 end
        local excess = limit - cost
        if excess >= 5 then return 0 end
        return excess
      end
      local ms = wait(ARGV[1], ARGV[2])
      return ms`
    expect(optimised(source)).toEqual([
      'local ms',
      'local cost, limit = ARGV[1], ARGV[2]',
      'if cost > limit then',
      ' ms = -1',
      'else',
      ' local excess = limit - cost',
      ' if excess >= 5 then',
      '  ms = 0',
      ' else',
      '  ms = excess',
      ' end',
      'end',
      'return ms',
    ])
  })

  test('of functions in a table are resolved where the entry is known', () => {
    const source =
      'local ONE, look = 1, {}\nlook[ONE] = function(a) return a .. a end\nlocal k = ARGV[1]\nreturn look[k](KEYS[1])'
    expect(optimised(source, { k: 1 })).toEqual(['local a = KEYS[1]', 'return a .. a'])
    expect(optimised(source)).toContain('look[1] = function(a)')
  })

  test('keep names apart that mean different things', () => {
    const source = `
      local now = ARGV[1]
      local function later(ms) return redis.call('GET', now + ms) end
      local function ask(now) local ms = later(1) return ms + now end
      local x = ask(2)
      return x`
    expect(optimised(source)).toEqual([
      'local now = ARGV[1]',
      'local x',
      "local ms = redis.call('GET', now + 1)",
      'x = ms + 2',
      'return x',
    ])
  })

  test('in brackets still give one result', () => {
    const source = 'local function first(s) return (struct.unpack(s)) end\nreturn { first(KEYS[1]) }'
    expect(optimised(source)).toEqual(['return { (struct.unpack(KEYS[1])) }'])
  })

  test('give and take as many values as they did', () => {
    const pair = 'local function pair(a, b) if a then return a, b end return end\n'
    expect(optimised(`${pair}local x, y = pair(KEYS[1], 2)\nreturn x, y`)).toEqual([
      'local x, y',
      'local a = KEYS[1]',
      'if a then',
      ' x, y = a, 2',
      'else',
      ' x, y = nil',
      'end',
      'return x, y',
    ])
    const swap = 'local function swap(a, b) return b, a end\n'
    expect(optimised(`${swap}return swap(struct.unpack(KEYS[1]))`)).toContain('return swap(struct.unpack(KEYS[1]))')
    const both = 'local unpackBytes = struct.unpack\nlocal function both(a) return { a } end\n'
    expect(optimised(`${both}return both(unpackBytes(KEYS[1]))`)).toEqual([
      'local unpackBytes = struct.unpack',
      'return { (unpackBytes(KEYS[1])) }',
    ])
  })

  test('stay where they cannot be moved past what they change, or come to themselves', () => {
    const counting = `
      local n = ARGV[1]
      local function count()
        if n > 5 then return 0 end
        n = n + 1
        return n
      end
      return n + count()`
    expect(optimised(counting)).toContain('return n + count()')
    const recursive =
      'local function f(n)\nif n == 0 then return 0 end\nreturn f(n - 1)\nend\nlocal x = f(ARGV[1])\nreturn x'
    expect(optimised(recursive)).toContain('local x = f(ARGV[1])')
  })

  test('still evaluate results that the statement has no use for, if these ask Redis', () => {
    const source = "local call = redis.call\nlocal function f(k) return call('GET', k) + 1, 2 end\nf(KEYS[1])\nreturn 1"
    expect(optimised(source)).toEqual([
      'local call = redis.call',
      'local k = KEYS[1]',
      "local _ = call('GET', k) + 1",
      'return 1',
    ])
  })

  test('that are left have their function made only where it is called', () => {
    const source = `
      local function last(n)
        while n > 0 do if KEYS[n] then return n end n = n - 1 end
        return 0
      end
      local found = 1
      if ARGV[1] then found = last(5) + 1 end
      return found`
    const lines = optimised(source)
    expect(lines.indexOf(' local function last(n)')).toBe(lines.indexOf('if ARGV[1] then') + 1)
  })
})

describe('what is known', () => {
  test('settles conditions and loops, and turns entries of tables into variables', () => {
    const source = `
      local costs = {}
      local cells, kind = ARGV[1], ARGV[2]
      for c = 1, cells do costs[c] = ARGV[c + 2] end
      if kind == 2 and cells > 1 then return 'several' elseif kind ~= 2 then return costs[1] end
      return 'one'`
    expect(optimised(source, { cells: 1, kind: 3 })).toEqual(['local costs = ARGV[3]', 'return costs'])
    expect(optimised(source, { cells: 1, kind: 2 })).toEqual(["return 'one'"])
  })

  test('of a comparison for equality is turned round, and of no other', () => {
    expect(optimised('return not (KEYS[1] == 1), not (KEYS[1] ~= 1), not (KEYS[1] < KEYS[2])')).toEqual([
      'return KEYS[1] ~= 1, KEYS[1] == 1, not (KEYS[1] < KEYS[2])',
    ])
  })

  test('is worked out, but a text stays something that is made a number', () => {
    expect(optimised('local a = KEYS[1]\nreturn a + 2 * 3 - 1, a + 1 - 3, a + 2 - 2')).toEqual([
      'local a = KEYS[1]',
      'return a + 5, a - 2, a + 0',
    ])
  })

  test('has to be there', () => {
    expect(() => optimise('return 1', { cells: 1 })).toThrow('lua: there is no cells to be known')
  })

  test('drops loops that never run, by steps of any size', () => {
    const source = 'local n = 0\nfor i = 2, 1, 3 do n = n + i end\nreturn n'
    expect(optimised(source)).toEqual(['return 0'])
    for (const steps of ['1, 2, 3', '2, 1, -1'])
      expect(optimised(source.replace('2, 1, 3', steps)).join('\n')).toMatch(/^local n = 0\nfor i = /)
  })

  test('leaves loops alone that may end early', () => {
    const source = 'local n = 0\nfor i = 1, 1 do\nif ARGV[1] then break end\nn = n + 1\nend\nreturn n'
    expect(optimised(source)).toContain('for i = 1, 1 do')
  })
})

describe('what is not needed', () => {
  test('goes, but a call of Redis stays', () => {
    const source = "local call = redis.call\nlocal a, b = 1, call('GET', 'x')\nlocal c = { }\nc[1] = 2\nreturn 3"
    expect(optimised(source)).toEqual(['local call = redis.call', "local b = call('GET', 'x')", 'return 3'])
  })

  test('marks of parts stay', () => {
    const source = "--@when one\nlocal a = 1\nredis.call('SET', KEYS[1], a)\n--@end\nreturn 2"
    expect(optimised(source)).toEqual(['--@when one', "redis.call('SET', KEYS[1], 1)", '--@end', 'return 2'])
  })

  test('sections that several scripts have are the same in each, whatever variables are around them', () => {
    const section = "if ARGV[1] then\nlocal at, _ = ARGV[2], 1\nredis.call('GET', at, at)\nend"
    const sections = ['local at = KEYS[2]', 'local other = KEYS[2]'].map((around) => {
      const [name] = /\w+(?= =)/.exec(around) ?? []
      const source = `${around}\n--@when bans\n${section}\n--@end\nreturn ${name} + ${name}`
      expect(optimised(source).at(-1)).toBe(`return ${name} + ${name}`)
      return /--@when bans\n(.*)--@end/s.exec(optimise(source))?.[1]
    })
    expect(sections[0]).toContain(" local bans_at = ARGV[2]\n redis.call('GET', bans_at, bans_at)\n")
    expect(sections[1]).toBe(sections[0])
  })
})

test('each pass can be watched', () => {
  const passes: string[] = []
  const texts = new Set<string>()
  optimise('local n = 1\nreturn n + 1', {}, (pass, chunk) => {
    passes.push(pass)
    texts.add(printLua(chunk))
  })
  expect(passes.slice(0, 2)).toEqual(['specialise', 'foldConstants'])
  expect(passes.at(-1)).toBe('sinkFunctions')
  expect([...texts]).toEqual([
    'local n = 1\nreturn n + 1\n',
    'local n = 1\nreturn 1 + 1\n',
    'return 1 + 1\n',
    'return 2\n',
  ])
})
