import { basename } from 'node:path'
import { type Block, importedBlock } from './markdown.js'

/**
 * A block as a module: what comes before it, the block, what comes after it. In the block
 *
 * - a line that ends with `// → value` must have that value (an object: at least those fields),
 * - a line that ends with `// throws "message"` must throw an error with that message,
 * - an import of `./name.js` is that of the block of `blocks` with this name,
 * - the tests of an import from `vitest` are those of the helpers, as tests cannot be within another.
 */
export function programOf<T extends Block & { readonly file: string }>(
  block: Block,
  support: string,
  blocks: readonly T[] = [],
): string {
  const { where, name, before, after } = block
  const hasTests = /^import .* from 'vitest'$/m.test(block.code)
  const code = block.code
    .replace(
      /(?<= from )'\.\/([\w-]+)\.js'/g,
      (_, file) => `'./${basename(importedBlock(name, file, blocks).file, '.ts')}.js'`,
    )
    .replace(/^(import .* from )'vitest'$/m, `$1'${support}'`)
  return [
    `// ${where}`,
    ...(hasTests ? [] : ["import { expect } from 'vitest'"]),
    `import { clear, get, passMs, send, shows, stopClock } from '${support}'`,
    before,
    code.split('\n').map(checked).join('\n'),
    after,
    'void [expect, clear, get, passMs, send, shows, stopClock]',
    '',
  ].join('\n')
}

/** Whether the block has to be compiled before it runs. */
export function hasDecorators({ code }: Pick<Block, 'code'>): boolean {
  return /^ *@\w/m.test(code)
}

function checked(line: string): string {
  const [, code = '', value] = /^(.*?) *\/\/ → (.*)$/.exec(line) ?? []
  if (value !== undefined) {
    const [, name] = /^const (\w+) = /.exec(code) ?? []
    const matcher = value.startsWith('{') ? 'toMatchObject' : 'toEqual'
    return `${name ? `${code};` : ''}expect(${name ?? code}).${matcher}(${value})`
  }
  const [, throwing, message] = /^(.*?) *\/\/ throws (".*")$/.exec(line) ?? []
  // Neither its result nor its type matters, as it throws.
  if (message !== undefined)
    return `// @ts-ignore: the compiler may refuse it too.\nawait expect((async () => { ${throwing} })()).rejects.toThrow(${message})`
  return line
}
