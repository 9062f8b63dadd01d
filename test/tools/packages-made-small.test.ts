import { createContext, Script } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { foldLines, UNFOLD } from '../../scripts/lib/fold-lines.js'
import { shortenNames } from '../../scripts/lib/shorten-names.js'

describe('a program with shorter names', () => {
  const program = `
var BaseStore = class {
  #started = 'yes';
  async #decideOne(handler) {
    return this.isStarted(this) && handler();
  }
  isStarted(someStore) {
    return #started in someStore;
  }
  consume(handler) {
    return this.#decideOne(handler);
  }
};
var retried = (handler) => handler();
function madeResponder(longOption) {
  const insideOf = () => { throw new TypeError("#decideOne: " + longOption) };
  return function respond() { insideOf() };
}
module.exports = (longText) => new BaseStore().consume(() => retried(madeResponder(longText)));
`
  async function thrown(source: string) {
    const context = createContext({ module: {} })
    new Script(source, { filename: 'program.cjs' }).runInContext(context)
    return context.module.exports('message').catch((error: Error) => error) as Promise<Error>
  }

  test('a program with shortened names keeps the names of functions, methods and classes in stack traces', async () => {
    const calls = ({ stack = '' }: Error) => [...stack.matchAll(/at (\S+) \(program/g)].map(([, name]) => name)
    const called = ['insideOf', 'respond', 'retried', '#decideOne', 'BaseStore.consume']
    expect(calls(await thrown(program))).toEqual(expect.arrayContaining(called))
    expect(calls(await thrown(await shortenNames(program)))).toEqual(calls(await thrown(program)))
  })

  test('a program with shortened names does the same, in fewer characters and short lines', async () => {
    const shortened = await shortenNames(program)
    expect(await thrown(shortened)).toMatchObject({ name: 'TypeError', message: '#decideOne: message' })
    expect(shortened).not.toMatch(/handler|longOption|longText|someStore|#started/)
    expect(shortened.split('\n').length).toBeGreaterThan(5)
  })
})

describe('texts that are folded', () => {
  const unfold = new Function('folded', `${UNFOLD}; return unfold(folded)`)
  const long = (name: string) => name.repeat(60)

  test('folded texts contain a passage once, and can be unfolded', () => {
    const texts = { one: [long('a'), long('b'), 'end'].join('\n'), two: ['x', long('a'), long('b'), ''].join('\n') }
    expect(foldLines(texts)).toEqual({ one: [texts.one], two: ['x', [0, 2], ''] })
    expect(unfold(foldLines(texts))).toEqual(texts)
  })

  test('any folded texts can be unfolded', () => {
    const line = fc.constantFrom('', 'a', long('b'), long('c'), long('d'))
    const text = fc.array(line, { minLength: 1, maxLength: 12 }).map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(fc.array(text, { maxLength: 5 }), (all) => {
        const texts = Object.fromEntries(all.map((each, i) => [`text${i}`, each]))
        expect(unfold(JSON.parse(JSON.stringify(foldLines(texts))))).toEqual(texts)
      }),
    )
  })
})
