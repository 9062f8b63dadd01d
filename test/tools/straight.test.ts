import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scriptsOf } from '../../scripts/lib/lua-scripts.js'
import { straighten } from '../../scripts/lib/lua-straighten.js'
import { parseLua, printLua } from '../../scripts/lib/lua-tree.js'
import { withThrowawayRedis } from '../../scripts/lib/throwaway-redis.js'

/** What becomes of a script, line by line. */
const straight = (source: string, known = {}) => straighten(source, known).trimEnd().split('\n')

describe('calls', () => {
  test('of functions that are one expression become that expression', () => {
    expect(straight('local function twice(x) return 2 * (x + 1) end\nreturn twice(KEYS[1]) - twice(3)')).toEqual([
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
    expect(straight(source)).toEqual([
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
    expect(straight(source, { k: 1 })).toEqual(['local a = KEYS[1]', 'return a .. a'])
    expect(straight(source)).toContain('look[1] = function(a)')
  })

  test('keep names apart that mean different things', () => {
    const source = `
      local now = ARGV[1]
      local function later(ms) return redis.call('GET', now + ms) end
      local function ask(now) local ms = later(1) return ms + now end
      local x = ask(2)
      return x`
    expect(straight(source)).toEqual([
      'local now = ARGV[1]',
      'local x',
      "local ms = redis.call('GET', now + 1)",
      'x = ms + 2',
      'return x',
    ])
  })

  test('in brackets still give one result', () => {
    const source = 'local function first(s) return (struct.unpack(s)) end\nreturn { first(KEYS[1]) }'
    expect(straight(source)).toEqual(['return { (struct.unpack(KEYS[1])) }'])
  })

  test('give and take as many values as they did', () => {
    const pair = 'local function pair(a, b) if a then return a, b end return end\n'
    expect(straight(`${pair}local x, y = pair(KEYS[1], 2)\nreturn x, y`)).toEqual([
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
    expect(straight(`${swap}return swap(struct.unpack(KEYS[1]))`)).toContain('return swap(struct.unpack(KEYS[1]))')
    const both = 'local unpackBytes = struct.unpack\nlocal function both(a) return { a } end\n'
    expect(straight(`${both}return both(unpackBytes(KEYS[1]))`)).toEqual([
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
    expect(straight(counting)).toContain('return n + count()')
    const recursive =
      'local function f(n)\nif n == 0 then return 0 end\nreturn f(n - 1)\nend\nlocal x = f(ARGV[1])\nreturn x'
    expect(straight(recursive)).toContain('local x = f(ARGV[1])')
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
    const lines = straight(source)
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
    expect(straight(source, { cells: 1, kind: 3 })).toEqual(['local costs = ARGV[3]', 'return costs'])
    expect(straight(source, { cells: 1, kind: 2 })).toEqual(["return 'one'"])
  })

  test('is worked out, but a text stays something that is made a number', () => {
    expect(straight('local a = KEYS[1]\nreturn a + 2 * 3 - 1, a + 1 - 3, a + 2 - 2')).toEqual([
      'local a = KEYS[1]',
      'return a + 5, a - 2, a + 0',
    ])
  })

  test('has to be there', () => {
    expect(() => straighten('return 1', { cells: 1 })).toThrow('lua: there is no cells to be known')
  })

  test('drops loops that never run, by steps of any size', () => {
    const source = 'local n = 0\nfor i = 2, 1, 3 do n = n + i end\nreturn n'
    expect(straight(source)).toEqual(['return 0'])
    for (const steps of ['1, 2, 3', '2, 1, -1'])
      expect(straight(source.replace('2, 1, 3', steps)).join('\n')).toMatch(/^local n = 0\nfor i = /)
  })

  test('leaves loops alone that may end early', () => {
    const source = 'local n = 0\nfor i = 1, 1 do\nif ARGV[1] then break end\nn = n + 1\nend\nreturn n'
    expect(straight(source)).toContain('for i = 1, 1 do')
  })
})

describe('what nobody needs', () => {
  test('goes, but not what asks Redis', () => {
    const source = "local call = redis.call\nlocal a, b = 1, call('GET', 'x')\nlocal c = { }\nc[1] = 2\nreturn 3"
    expect(straight(source)).toEqual(['local call = redis.call', "local b = call('GET', 'x')", 'return 3'])
  })

  test('marks of parts stay', () => {
    const source = "--@when one\nlocal a = 1\nredis.call('SET', KEYS[1], a)\n--@end\nreturn 2"
    expect(straight(source)).toEqual(['--@when one', "redis.call('SET', KEYS[1], 1)", '--@end', 'return 2'])
  })
})

describe('the tree', () => {
  test.each([
    'local a = (1 + 2) * 3 - (4 - (5 - 6))',
    "local a = ('x' .. 'y') .. 'z' .. 1",
    'local a = not (b and c) or -d ^ 2 == (-e) ^ 2 and - -f',
    'local a = (g(h)) and k((l()), (m(n)), {})',
    'local a, b = { 1, { 2 } }, #c[1].d[e]',
    'while a do repeat_ = a break end',
    'for k, v in pairs(t) do t[k] = v end',
    'if a then b() elseif c then d() else e() end',
  ])('is written as it was read: %s', (source) => {
    const once = printLua(parseLua(source))
    expect(printLua(parseLua(once))).toBe(once)
    expect(once.replace(/\s+/g, ' ').trim()).toBe(
      source.replace('- -f', '-(-f)').replace("('x' .. 'y') .. 'z' .. 1", "('x' .. 'y') .. 'z' .. 1"),
    )
  })

  test.each(['goto x', 'local t = { a = 1 }', 'f "x"', 'repeat until x', 'function f() end'])(
    'refuses what our scripts do without: %s',
    (source) => {
      expect(() => printLua(parseLua(source))).toThrow()
    },
  )
})

test('a straight script does in Redis what it did before', async () => {
  const source = `
    local call, floor, max, min = redis.call, math.floor, math.max, math.min
    local packBytes, unpackBytes = struct.pack, struct.unpack
    local kept, seen, look, take = {}, 0, {}, {}
    local function drain(debt, since, at)
      if at <= since then return debt end
      return max(0, debt - (at - since))
    end
    local function entry(i)
      seen = seen + 1
      if i > 3 then return (unpackBytes('>I2', packBytes('>I2', i * i))) end
      return i
    end
    local function search(of, from, to)
      while from < to do
        local middle = floor((from + to) / 2)
        if of(middle) > 10 then to = middle else from = middle + 1 end
      end
      return from
    end
    look[1] = function(key, at)
      kept[1] = (call('GET', key) or 7) + 0
      kept[1] = drain(kept[1], 3, at)
      return search(entry, 1, 20)
    end
    take[1] = function(key, cost) call('SET', key, kept[1] + cost) end
    local out, kinds = {}, tonumber(ARGV[1])
    for c = 1, kinds do
      for step = 1, 5 do
        local found = look[c](KEYS[c], step)
        if found > 3 and step ~= 2 then take[c](KEYS[c], min(found, step)) end
        out[#out + 1] = found .. ',' .. kept[c] .. ',' .. seen
      end
    end
    return table.concat(out, ' ') .. ' ' .. call('GET', KEYS[1])`
  await withThrowawayRedis(async (redisCli) => {
    const run = async (script: string) => {
      await redisCli(['FLUSHALL'])
      return redisCli(['EVAL', script, '1', 'key', '1'])
    }
    const before = await run(source)
    expect(before).toMatch(/^4,7,\d+ .* \d+$/)
    expect(await run(straighten(source))).toBe(before)
    const known = straighten(source, { kinds: 1 })
    expect(await run(known)).toBe(before)
    expect(known).not.toContain('function')
  })
})

describe('the scripts for batches that are alike', () => {
  const lua = join(import.meta.dirname, '../../lua')
  const scripts = scriptsOf((name) => {
    const file = join(lua, `${name}.lua`)
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  })
  const functions = (text = '') => text.match(/^.*\bfunction\b.*$/gm) ?? []

  test.each(['bucket', 'counter', 'segments', 'concurrency'])(
    'decide-%s makes no function, and a table only for replies to several',
    (kind) => {
      const script = scripts[`decide-${kind}`]
      expect(functions(script)).toEqual([])
      expect(new Set(script?.match(/^.*\{.*$/gm)?.map((line) => line.trim()))).toEqual(new Set(['more = more or {}']))
    },
  )

  test.each(['log', 'logs'])('decide-%s makes functions only where a log is written anew or was read whole', (kind) => {
    for (const line of functions(scripts[`decide-${kind}`]))
      expect(line).toMatch(/^ {6,}local function log_(rewrite|advanceAll)\(/)
  })
})
