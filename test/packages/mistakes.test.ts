// Release: packages as users have them.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { byIp, createLimiter, perDay, RedisStore, rateLimit } from '@sluice/express'
import ts from 'typescript5'
import { beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { COMPILERS, printed } from './docs/compilers.js'
import { MISTAKES } from './wrong-calls.js'

/** Options that are passed on in parts, as programs do. */
const ORDINARY = `
function limited(options: Omit<ExpressRateLimitOptions, keyof LimitForm>) {
  return rateLimit({ limit: 5, window: '1m', ...options })
}
const base: Omit<ExpressRateLimitOptions, keyof LimitForm> = { key: byIp(), ban: { after: 3, within: '1h', for: ['10m'] } }
const { key, ...others } = base
limited({ ...base, ...others })
const passOn = (options: ExpressRateLimitOptions & LimitForm) => rateLimit({ ...options })
passOn({ limit: 5, window: '1m', ...base })
createLimiter({ limit: 5, window: '1m', ...(undefined as { name: string } | undefined) })
rateLimit({ limits: [perDay(5)], ...others, key: key ?? ((req) => req.ip) })
export const banned: number | undefined = base.ban?.after
`

const NAMES = { byIp, createLimiter, perDay, RedisStore, rateLimit }
const FOLDER = fileURLToPath(new URL('../.tmp/mistakes', import.meta.url))
const OPTIONS = { strict: true, exactOptionalPropertyTypes: true, module: 'nodenext', target: 'es2022', noEmit: true }
const fileOf = (index: number) => `mistake-${index}.ts`
const importing = (program: string) =>
  `import { type ExpressRateLimitOptions, type LimitForm, ${Object.keys(NAMES)} } from '@sluice/express'\n${program}\nexport {}\n`

beforeAll(() => {
  ensureBuilt('core', 'express')
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...OPTIONS, types: ['node'] } }))
  writeFileSync(join(FOLDER, 'ordinary.ts'), importing(ORDINARY))
  MISTAKES.forEach(([program], i) => {
    writeFileSync(join(FOLDER, fileOf(i)), importing(program))
  })
})

describe.each(Object.entries(COMPILERS))('TypeScript %s', (_, compiler) => {
  let report = ''
  beforeAll(async () => {
    report = await printed(compiler, FOLDER, ['-p', 'tsconfig.json', '--pretty', 'false'])
  })

  test.each(MISTAKES.map(([program, hint], i) => [program, hint, i] as const))(
    'the compiler says what to write instead of %s',
    (_, hint, i) => {
      const errors = report.split(/^(?=\S)/m).filter((error) => error.startsWith(`${fileOf(i)}(`))
      expect(errors.join('')).toContain(hint)
    },
  )

  test('the compiler takes options that are spread and passed on', () => {
    expect(report).not.toContain('ordinary.ts')
  })
})

test.each(MISTAKES)('the error at run time says what to write instead of %s', (program, _, hint) => {
  const run = new Function(...Object.keys(NAMES), program)
  expect(() => run(...Object.values(NAMES))).toThrow(hint)
})

test('editors strike through names of other libraries among the options', () => {
  const file = join(FOLDER, 'completed.ts')
  const text = importing('rateLimit({  })')
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({ strict: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022 }),
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const read = name === file ? text : ts.sys.readFile(name)
      return read === undefined ? undefined : ts.ScriptSnapshot.fromString(read)
    },
    getCurrentDirectory: () => FOLDER,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (name) => name === file || ts.sys.fileExists(name),
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  })
  const { entries = [] } = service.getCompletionsAtPosition(file, text.indexOf('({  })') + 3, undefined) ?? {}
  const isStruck = (name: string) =>
    /deprecated/.test(entries.find((each) => each.name === name)?.kindModifiers ?? 'none')
  expect(['max', 'windowMs', 'keyGenerator', 'limit', 'window', 'key'].map(isStruck)).toEqual([
    ...[true, true, true],
    ...[false, false, false],
  ])
})
