import { describe, expect, test } from 'vitest'
import { parseLua } from '../src/tree/parse.js'
import { printLua } from '../src/tree/print.js'
import { requireDeclared } from '../src/tree/require-declared.js'

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

  test.each([
    'goto x',
    'local t = { a = 1 }',
    'f "x"',
    'repeat until x',
    'function f() end',
    'local function f(...) end',
  ])('refuses what our scripts do without, with the line: %s', (source) => {
    expect(() => parseLua(`local a\n${source}`)).toThrow(/line 2|\[2:/)
  })
})

describe('a name', () => {
  test.each(['local a = tonumber(ARGV[1]) return a', 'local function f(n) return f(n - 1) end', 'return DECISION'])(
    'that is declared, or is in Redis, passes: %s',
    (source) => expect(() => requireDeclared('x', source)).not.toThrow(),
  )

  test.each(['return gone', 'local a = a', 'if KEYS[1] then local gone = 1 end return gone', 'gone = 1'])(
    'that is not declared where it is used is rejected: %s',
    (source) => expect(() => requireDeclared('x', source)).toThrow(/^x: (gone|a) is not declared/),
  )
})
