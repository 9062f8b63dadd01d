import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { afterAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'validate-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function sluice(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const stdout = { write: (text: string) => (out += text) }
  const stderr = { write: (text: string) => (err += text) }
  const code = await run(args, { env: {}, stdout, stderr, version: '0' })
  return { code, out, err }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const right = file(
  'right.yaml',
  'version: 1\npolicies: { api: { key: account, limits: [{ limit: 1, window: 1s }] } }\n',
)
const wrong = file('wrong.yaml', 'version: 1\npolicies:\n  api: { limits: [{ limit: 1, windw: 1s }] }\n')

test('validate exits with 0 for right documents', async () => {
  expect(await sluice('validate', right)).toEqual({ code: 0, out: `${right}: right\n`, err: '' })
})

test('validate can warn of a right document', async () => {
  const warned = file(
    'warned.yaml',
    'version: 1\npolicies:\n  api: { limits: [{ limit: 1, window: 1s }] }\noverrides:\n  - { policy: api, key: { user: a }, limits: [{ limit: 2 }] }\n',
  )
  const { code, out } = await sluice('validate', warned)
  expect(code).toBe(0)
  expect(out).toMatch(
    /warned\.yaml:5:25: overrides\[0\]\.key: warning: policy "api" counts by "ip", so .*\n.*: right\n$/,
  )
  const { files } = JSON.parse((await sluice('validate', warned, '--json')).out)
  expect(files).toMatchObject([{ problems: [], warnings: [{ line: 5, path: 'overrides[0].key' }] }])
})

test('validate prints each mistake of each file on its own line', async () => {
  const { code, out } = await sluice('validate', right, wrong, join(folder, 'none'))
  expect(code).toBe(1)
  expect(out.split('\n')).toEqual([
    `${right}: right`,
    expect.stringContaining(`${wrong}:3:19: policies.api.limits[0]: window is missing`),
    expect.stringContaining(`${wrong}:3:31: policies.api.limits[0].windw: unknown field; did you mean window?`),
    expect.stringContaining('none: expected a file that can be read (ENOENT)'),
    '',
  ])
})

test('validate --json prints the same for programs', async () => {
  const { code, out } = await sluice('validate', wrong, '--json')
  expect(code).toBe(1)
  expect(JSON.parse(out)).toMatchObject({
    right: false,
    files: [{ file: wrong, problems: [{ line: 3, column: 19 }, { column: 31 }] }],
  })
})

test('validate without a file is wrong usage', async () => {
  const { code, err } = await sluice('validate')
  expect(code).toBe(2)
  expect(err).toBe('sluice: expected FILE…\nsluice validate --help shows what there is.\n')
})

test('the help of validate names files', async () => {
  const { out } = await sluice('validate', '--help')
  expect(out).toContain('Usage: sluice validate [options] FILE…')
})
