import { describe, expect, test } from 'vitest'
import { bundle } from '../src/source/bundle.js'
import { cellKindsOf, readWithKinds } from '../src/source/cell-kinds.js'
import { constantsOf } from '../src/source/constants.js'
import { impurities } from '../src/source/impurities.js'
import { piecesOf, withSections } from '../src/source/sections.js'
import { stripLine } from '../src/source/strip-line.js'

/** A lua/ folder that exists only here. */
const folder = (files: Record<string, string>) => (name: string) => files[name]

describe('includes', () => {
  test('stand where they are named, nested ones first', () => {
    const read = folder({
      decide: 'local now = 1\n--- @include "kernels/bucket"\nreturn bucket(now)\n',
      'kernels/bucket': '--- @include "kernels/clock"\nlocal function bucket(at) return clock(at) end\n',
      'kernels/clock': 'local function clock(at) return at end\n',
    })
    expect(bundle('decide', read)).toBe(
      [
        'local now = 1',
        'local function clock(at) return at end',
        'local function bucket(at) return clock(at) end',
        'return bucket(now)',
        '',
      ].join('\n'),
    )
  })

  test('come in once, however often they are named', () => {
    const read = folder({
      decide: '--- @include "a"\n--- @include "b"\n--- @include "a"\nreturn 1',
      a: 'local a = 1',
      b: '--- @include "a"\nlocal b = a',
    })
    expect(bundle('decide', read)).toBe('local a = 1\nlocal b = a\nreturn 1\n')
  })

  test('that lead back to themselves are refused, with the way round', () => {
    const read = folder({ a: '--- @include "b"', b: '--- @include "c"', c: '--- @include "b"' })
    expect(() => bundle('a', read)).toThrow('lua: include cycle: a -> b -> c -> b')
  })

  test('of a missing file are rejected, with the line of the include', () => {
    expect(() => bundle('a', folder({ a: 'local x\n--- @include "kernels/gone"' }))).toThrow(
      'lua/a.lua:2: there is no lua/kernels/gone.lua',
    )
  })

  test.each(['-- @include "b"', '--- @include b', "--- @include 'b'", '--- @include "b.lua"', '--- @include "../b"'])(
    'that are mistyped are refused instead of lost as comments: %s',
    (line) => {
      expect(() => bundle('a', folder({ a: line, b: '' }))).toThrow('lua/a.lua:1: expected --- @include "folder/name"')
    },
  )
})

describe('stripping', () => {
  test.each([
    ['local x = 1 -- one', 'local x = 1'],
    ['    indented()  ', 'indented()'],
    ['--- a docstring', ''],
    ['   ', ''],
    [`local s = '--' -- dashes`, `local s = '--'`],
    [`local s = "it's -- here" -- not here`, `local s = "it's -- here"`],
    [`local s = 'it\\'s -- here' -- not here`, `local s = 'it\\'s -- here'`],
    [`local s = '\\\\' -- gone`, `local s = '\\\\'`],
    [`local s = '[[' .. "]]"`, `local s = '[[' .. "]]"`],
    ['local n = a - -b', 'local n = a - -b'],
    ['local v = t[u[1]]', 'local v = t[u[1]]'],
  ])('%s', (line, stripped) => {
    expect(stripLine(line, 'here')).toBe(stripped)
  })

  test.each(['local s = [[long]]', 'local s = [==[long]==]', '--[[ long comment', 'x() --[=[ long comment'])(
    'refuses long brackets, which reach over line ends: %s',
    (line) => {
      expect(() => stripLine(line, 'lua/a.lua:7')).toThrow('lua/a.lua:7: long brackets')
    },
  )

  test.each(['local s = "open', "local s = 'open\\"])('refuses a string that does not end on its line: %s', (line) => {
    expect(() => stripLine(line, 'lua/a.lua:7')).toThrow('lua/a.lua:7: a string must end on the line')
  })

  test('treats Windows line ends like any others', () => {
    expect(bundle('a', folder({ a: 'local x = 1\r\n\r\n  return x\r\n' }))).toBe('local x = 1\nreturn x\n')
  })
})

describe('sections', () => {
  const source = ['a', '--@when one', 'b', '--@when two', 'c', '--@end', '--@end', '--@when two', 'd', '--@end'].join(
    '\n',
  )

  test('that are chosen stay without their marks, and those that are not go with all in them', () => {
    expect(withSections(source, { one: true, two: true })).toBe('a\nb\nc\nd')
    expect(withSections(source, { one: false, two: true })).toBe('a\nd')
  })

  test('that are not spoken of stay with their marks', () => {
    expect(withSections(source, { two: false })).toBe('a\n--@when one\nb\n--@end')
    expect(withSections(source, {})).toBe(source)
  })

  test('are the sections of pieces, which give the same script where those that are not chosen are left out', () => {
    expect(piecesOf(source)).toEqual([
      { sections: [], source: 'a' },
      { sections: ['one'], source: 'b' },
      { sections: ['one', 'two'], source: 'c' },
      { sections: ['two'], source: 'd' },
    ])
    for (const chosen of [[], ['one'], ['two'], ['one', 'two']]) {
      const pieces = piecesOf(source).filter(({ sections }) => sections.every((section) => chosen.includes(section)))
      const choice = { one: chosen.includes('one'), two: chosen.includes('two') }
      expect(pieces.map((piece) => piece.source).join('\n')).toBe(withSections(source, choice))
    }
  })
})

describe('exported constants', () => {
  test('are the numbers of the line below, by group', () => {
    const source = 'local A = 3\n--- @export ops\nlocal PEEK, CHARGE = 1, 2\n--- @export flags\nlocal MORE = 16\n'
    expect(constantsOf('a', source)).toEqual({ ops: { PEEK: 1, CHARGE: 2 }, flags: { MORE: 16 } })
  })

  test.each([
    '-- @export ops\nlocal A = 1',
    '--- @export\nlocal A = 1',
    '--- @export ops\nlocal A, B = 1',
    '--- @export ops',
  ])('that cannot be read are refused with the line: %j', (source) => {
    expect(() => constantsOf('a', source)).toThrow('lua/a.lua:1: expected')
  })
})

describe('kinds of cells', () => {
  const kindsIn = (files: Record<string, string>) =>
    cellKindsOf({ read: (name) => files[name.replace('cells/', '')], cells: Object.keys(files).sort() })

  test('are what their files declare, in the order of their numbers', () => {
    const kinds = kindsIn({
      a: '--- @kind 2 params=2 permits\n--- @calls ZADD 0 a\n--- @calls ZCARD\nlocal x',
      b: '--- @kind 1 params=4 together\n--- @script decide-b own=1 limits=1\n--- @script one-bs shared\n--- @when exchange\n--- @end\n',
    })
    expect(kinds).toEqual([
      {
        name: 'b',
        number: 1,
        params: 4,
        goesTogether: true,
        hasPermits: false,
        isExchanged: true,
        scripts: [
          { name: 'decide-b', isShared: false, isJoint: false, known: { own: 1, limits: 1 } },
          { name: 'one-bs', isShared: true, isJoint: false, known: {} },
        ],
        calls: [],
      },
      {
        name: 'a',
        number: 2,
        params: 2,
        goesTogether: false,
        hasPermits: true,
        isExchanged: false,
        scripts: [],
        calls: [['ZADD', '0', 'a'], ['ZCARD']],
      },
    ])
  })

  test('are what decide.lua includes: their numbers, and each in a section and a block of its own', () => {
    const files = { a: '--- @kind 1 params=1 permits\nlocal x = A', b: '--- @kind 2 params=1\nlocal y = B' }
    const decide = '--- @include "made/kinds"\n--- @include "made/cells"\n'
    const read = (name: string) => ({ decide, 'cells/a': files.a, 'cells/b': files.b })[name]
    expect(bundle('decide', readWithKinds(read, kindsIn(files)))).toBe(
      [
        'local A, B = 1, 2',
        'local function hasPermits(kind) return kind == A end',
        ...['--@when a', 'do', 'local x = A', 'end', '--@end', '--@when b', 'do', 'local y = B', 'end', '--@end', ''],
      ].join('\n'),
    )
  })

  test('have the numbers from 1 on, each once', () => {
    expect(() => kindsIn({ a: '--- @kind 1 params=1', b: '--- @kind 3 params=1' })).toThrow(
      'lua/cells/b.lua: @kind: expected 2, the next number, got 3',
    )
    expect(() => kindsIn({ a: '--- @kind 1 params=1', b: '--- @kind 1 params=1' })).toThrow('expected 2')
    expect(() => kindsIn({ a: 'local x' })).toThrow('lua/cells/a.lua: expected a line --- @kind 1 params=4')
  })

  test.each([
    '--- @kind bucket',
    '--- @kind 1',
    '--- @kind 1 params=4 togehter',
    '--- @kind 1 params=4 own=1',
    '-- @kind 1 params=4',
    '--- @script bucket',
    '--- @script decide-bucket jiont',
    '--- @calls zadd',
    '--- @calls',
  ])('that declare what is not known are refused with the line: %j', (line) => {
    expect(() => kindsIn({ a: line })).toThrow('lua/cells/a.lua:1: expected ')
  })
})

describe('kernels', () => {
  test('may speak of redis in comments and strings only', () => {
    expect(impurities('kernels/a', '-- no redis.call here\nlocal s = "redis" -- redis')).toEqual([])
  })

  test('that call redis are named with the line', () => {
    expect(impurities('kernels/a', 'local x\nlocal y = redis.call("GET", x)')).toEqual([
      'lua/kernels/a.lua:2: a kernel is pure and may not use redis',
    ])
    expect(impurities('kernels/a', 'local y = tryCall("GET", x)')).toHaveLength(1)
  })

  test('of cells end where their state begins', () => {
    const source = "call('A')\n--- @kernel\ncall('B')\n--- @state\ncall('C')"
    expect(impurities('cells/a', source)).toEqual(['lua/cells/a.lua:3: a kernel is pure and may not use redis'])
  })
})
