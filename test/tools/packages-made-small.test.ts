import { createContext, Script } from 'node:vm'
import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { withOneThrow } from '../../scripts/lib/one-throw.js'
import { pack, UNPACK } from '../../scripts/lib/scripts-apart.js'
import { shortenNames } from '../../scripts/lib/shorten-names.js'
import { withWholeTexts } from '../../scripts/lib/whole-texts.js'

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

  test('an ES module exports variables of the same names, for bundlers that name an import like the variable', async () => {
    const shortened = await shortenNames(
      'const noPolicies = new Set();\nconst inner = [noPolicies];\nexport {\n  noPolicies,\n  inner as outer\n};\n',
      true,
    )
    expect(shortened).toMatch(/export\{noPolicies,inner as outer\}/)
  })
})

describe('a program that throws on one line', () => {
  const program =
    'var noted=[];function note(e){noted.push(e)}' +
    'module.exports={one(e){if(e)throw e;return 1},both(e){throw note(e),e},of(make){throw make(()=>{throw new Error("inner")})},' +
    'async late(e){throw await e},arrow:e=>{switch(e){case 1:throw e}return 2}}'
  type Exports = Record<string, (value: unknown) => unknown>
  const run = (source: string) => {
    const context = createContext({ module: {} })
    new Script(source, { filename: 'program.cjs' }).runInContext(context)
    return context.module.exports as Exports
  }

  const thrownBy = (run: () => unknown): unknown => {
    try {
      return run()
    } catch (error) {
      return error
    }
  }

  test('a program that throws on one line throws the same', async () => {
    const { one, both, of, late, arrow } = run(withOneThrow(program)) as Required<Exports>
    const thrown = [one?.(0), arrow?.(0), ...[one, both, arrow].map((each) => thrownBy(() => each?.(1)))]
    expect(thrown).toEqual([1, 2, 1, 1, 1])
    expect(thrownBy(() => of?.(thrownBy))).toMatchObject({ message: 'inner' })
    await expect(late?.(Promise.resolve(new Error('late')))).rejects.toThrow('late')
  })

  test('a program that throws on one line has no other one with a throw, and one that never throws stays as it is', () => {
    const made = withOneThrow(program)
    expect(made.split('\n').filter((line) => /\bthrow\b/.test(line))).toEqual(['  throw error'])
    expect(withOneThrow('module.exports=1')).toBe('module.exports=1')
  })
})

describe('scripts that are compressed', () => {
  const long = (name: string) => name.repeat(600)
  const texts = [`${long('a')}\n${long('b')}`, '', `${long('b')} — ${long('a')}`]

  test('compressed scripts contain a passage once', () => {
    expect(pack(texts).length).toBeLessThan(200)
  })

  test('a script is decompressed when it is read, and not before', async () => {
    const program = `${UNPACK}\nlet times = 0\nconst packed = () => (times++, ${JSON.stringify(pack(texts))})
      export const read = () => times\nexport const parts = [0, 1, 2].map((i) => unpacked(i, 'source', { name: 'part' + i }))`
    const { parts, read } = await import(`data:text/javascript,${encodeURIComponent(program)}`)
    expect(read()).toBe(0)
    expect(parts.map(({ source }: { source: string }) => source)).toEqual(texts)
    expect([read(), parts[1].name]).toEqual([1, 'part1'])
  })
})

test('texts of a program with short lines are the same where a bundler indents its lines', () => {
  const words = `${'one two\\\\ '.repeat(30)}\\n`
  const program = transformSync(`module.exports = ['${words}', \`${words}\`]`, { lineLimit: 40, minify: true }).code
  const textsOf = (code: string) => {
    const context = createContext({ module: {} })
    new Script(code).runInContext(context)
    return context.module.exports as string[]
  }
  const indented = (code: string) => code.replaceAll(/(?<=\\)\n/g, '\n\t')
  expect(textsOf(indented(program))).not.toEqual(textsOf(program))
  expect(textsOf(indented(withWholeTexts(program)))).toEqual(textsOf(program))
})
