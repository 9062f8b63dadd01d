import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DOCUMENTS, fileOf, isApart } from './documents.js'
import type { Block } from './markdown.js'
import { programOf } from './program.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The compilers that are installed here, by their versions. */
export const COMPILERS = {
  '5.9': join(ROOT, 'node_modules/typescript5/bin/tsc'),
  '7': join(ROOT, 'node_modules/typescript/bin/tsc'),
}

/** The settings of a user's project. */
export interface Settings {
  readonly type: 'module' | 'commonjs'
  /** What `tsc --init` of the compiler sets. @default false */
  readonly isInitial?: boolean
  readonly options: Readonly<Record<string, unknown>>
}

/**
 * What any project needs to compile the samples. Declarations of what samples export name types of Express by the folders in
 * which pnpm keeps them.
 */
const NEEDED = {
  noEmit: true,
  types: ['node'],
  experimentalDecorators: true,
  declaration: false,
  declarationMap: false,
}

/**
 * The errors of a compiler in the samples of all pages, and in the declarations of our packages as built. Those in
 * declarations of others are left out, and so are modules of others that it does not find.
 *
 * @param place a folder of its own
 */
export async function errorsIn(place: string, compiler: string, settings: Settings): Promise<string[]> {
  // Within the folder of tests, so that imports find their dependencies.
  const folder = join(ROOT, 'test/.tmp/compilers', place)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  if (settings.isInitial) await printed(compiler, folder, ['--init'])
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: settings.type }))
  writeFileSync(join(folder, 'support.d.ts'), SUPPORT)
  const blocks = DOCUMENTS.flatMap((document) => document.blocks).filter(({ language }) => language === 'ts')
  for (const block of blocks) writeFileSync(join(folder, fileOf(block)), sampleOf(block, settings, blocks))
  const alone = blocks.filter(isApart)
  const sets = [blocks.filter((block) => !isApart(block)), ...alone.map((block) => [block])]
  const errors: string[] = []
  for (const [i, set] of sets.entries()) {
    const config = {
      ...(settings.isInitial && { extends: './tsconfig.json' }),
      compilerOptions: { ...settings.options, ...NEEDED },
      files: set.map(fileOf),
    }
    writeFileSync(join(folder, `set-${i}.json`), JSON.stringify(config))
    errors.push(...ours(await printed(compiler, folder, ['-p', `set-${i}.json`, '--pretty', 'false'])))
  }
  return errors
}

/** What the blocks and their sidecars import of tests. */
const SUPPORT = `
export declare const test: (name: string, run: () => unknown) => void
export declare const expect: any
export declare const startPostgres: any
export declare function clear(): void
export declare const get: (path: string, headers?: Record<string, string>) => Promise<Response>
export declare function send(method: string, path: string, headers?: Record<string, string>, body?: string): Promise<Response>
export declare function passMs(ms: number): void
export declare function shows(response: Response): void
export declare function stopClock(at?: string | number): void
interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly json: any
}
`

function sampleOf(block: Block, { type }: Settings, blocks: readonly Block[]): string {
  const support = type === 'module' ? './support.js' : './support'
  // Without the checks of tests after it, which users do not write.
  const [page] = block.where.split(':')
  const ofPage = blocks.filter(({ where }) => where.startsWith(`${page}:`))
  const files = ofPage.map((each) => ({ ...each, file: fileOf(each) }))
  const own = { ...block, after: '', file: fileOf(block) }
  return programOf(own, support, files).replaceAll(
    /from '(?:vitest|(?:\.\.\/)+support\/[\w-]+\.js)'/g,
    `from '${support}'`,
  )
}

/** `await` and `import.meta` of samples, which users of CommonJS write within a function, or otherwise. */
const OF_MODULES = ['TS1309', 'TS1343', 'TS1378', 'TS1432', 'TS1470']

function ours(report: string): string[] {
  return report.split(/^(?=\S)/m).filter((error) => {
    if (error.trim() === '') return false
    const [, file = '', code = '', message = ''] = /^([^\s(]+)\(\d+,\d+\): error (TS\d+): (.*)/.exec(error) ?? []
    if (file === '') return true
    if (/node_modules/.test(file)) return false
    if (OF_MODULES.includes(code)) return false
    // Packages of others may need newer settings.
    const [, module = ''] = /module '([^']+)'/.exec(message) ?? []
    return !['TS2307', 'TS7016', 'TS1479', 'TS1541'].includes(code) || module.startsWith('@sluice/')
  })
}

/** What a compiler prints. */
export function printed(compiler: string, cwd: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) =>
    execFile(process.execPath, [compiler, ...args], { cwd, maxBuffer: 1e8 }, (error, stdout, stderr) => {
      // 1 and 2: there are errors, which it prints.
      if (error && ![1, 2].includes(Number(error.code))) reject(error)
      else resolve(stdout + stderr)
    }),
  )
}
