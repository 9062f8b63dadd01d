// Release: packages as users have them.
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as express from '@sluice/express'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { WRONG_CALLS } from './wrong-calls.js'

const FOLDER = fileURLToPath(new URL('../.tmp/uncaught', import.meta.url))

beforeAll(() => {
  ensureBuilt('core', 'express', 'policies')
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
})

/** What Node prints that runs a program of users. */
function printed(name: string, program: string): Promise<string> {
  const file = join(FOLDER, name)
  const names = Object.keys(express).filter((each) => new RegExp(`\\b${each}\\b`).test(program))
  const isModule = name.endsWith('.mjs')
  const load = (what: string, from: string) =>
    isModule ? `import { ${what} } from '${from}'\n` : `const { ${what} } = require('${from}')\n`
  const imports = program.includes('policies.')
    ? load('policies', '@sluice/policies')
    : load(String(names), '@sluice/express')
  const body = isModule || !program.includes('await') ? program : `void (async () => {\n${program}\n})()`
  writeFileSync(file, `${imports}${body}\n`)
  return new Promise((resolve) => execFile(process.execPath, [file], (_, __, stderr) => resolve(stderr)))
}

test.each(WRONG_CALLS.map((program, i) => [program, i] as const))(
  'Node shows a short line of the library above the error of %s, and the line of the caller first below',
  async (program, i) => {
    // One in each form of modules: Node finds the line that it shows in two ways.
    const file = `call-${i}.${i % 2 === 0 ? 'mjs' : 'cjs'}`
    const report = await printed(file, program)
    const [above = '', below = ''] = report.split(/^(?=\w*Error[ :])/m)
    const [place = '', line = ''] = above.split('\n')
    expect(place).toMatch(/^\S*\.cjs:\d+$/)
    expect(line).toMatch(/^ *(?:throw error|Error\.captureStackTrace\(\w+\);?)$/)
    expect(below.split('\n').find((each) => each.startsWith('    at '))).toContain(join(FOLDER, file))
  },
)
