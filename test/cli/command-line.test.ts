import { execFile, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { type Outcome, sluice } from './support.js'

const BIN = fileURLToPath(new URL('../../packages/cli/bin/sluice.cjs', import.meta.url))
const MANIFEST = JSON.parse(readFileSync(new URL('../../packages/cli/package.json', import.meta.url), 'utf8'))

describe('help', () => {
  test.each([['--help'], ['-h']])('%s lists the commands', async (flag) => {
    const { code, stdout, stderr } = await sluice([flag])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Usage: sluice <command>/)
    expect(stdout).toContain('doctor  ')
  })

  test('without a command, help goes to stderr with the exit code 2', async () => {
    const { code, stdout, stderr } = await sluice([])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('Usage: sluice <command>')
  })

  test('the help of doctor names its options, defaults and exit codes, in lines that fit a terminal', async () => {
    const { code, stdout } = await sluice(['doctor', '--help'])
    expect(code).toBe(0)
    for (const option of ['--url URL', '--json', '--prefix TEXT', '--timeout TIME', '--pings N', '--scan-calls N']) {
      expect(stdout).toContain(option)
    }
    expect(stdout).toContain('(default: 20s)')
    expect(stdout).toMatch(/Exit code: 0 .*1 .*2 /)
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
  })
})

test('the help of commands about policies and identities names exit codes, in lines that fit a terminal', async () => {
  const ofPolicies = ['validate', 'explain', 'plan', 'apply', 'history', 'rollback', 'migrate']
  const ofIdentities = ['inspect', 'reset', 'blocks', 'bans', 'block', 'unblock', 'offenders', 'forget']
  for (const name of [...ofPolicies, ...ofIdentities]) {
    const { code, stdout } = await sluice([name, '--help'])
    expect([name, code]).toEqual([name, 0])
    expect(stdout).toMatch(/^Usage: sluice \w+ .*\n[\s\S]*Examples:[\s\S]*Exit code: 0 /)
    expect([name, stdout.split('\n').filter((line) => line.length > 120)]).toEqual([name, []])
  }
})

test('--version prints only the version', async () => {
  expect(await sluice(['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' })
})

describe('wrong command lines', () => {
  test.each<[string[], string]>([
    [['docter'], 'unknown command "docter"; did you mean doctor?'],
    [['serve-all'], 'unknown command "serve-all"'],
    [['--versoin'], 'unknown option "--versoin"; did you mean --version?'],
    [['doctor', '--jsno'], 'unknown option "--jsno"; did you mean --json?'],
    [['blocks', '--most', '5'], 'unknown option "--most"; use --max'],
    [['serve', '--on-unavailable', 'deny'], 'unknown option "--on-unavailable"; did you mean --unavailable?'],
    [['doctor', '--scan', '3'], 'unknown option "--scan"; did you mean --scan-calls?'],
    [['doctor', '--frobnicate'], 'unknown option "--frobnicate"'],
    [['doctor', '-x'], 'unknown option "-x"'],
    [['doctor', '--__proto__'], 'unknown option "--__proto__"'],
    [['doctor', '--constructor'], 'unknown option "--constructor"'],
    [['doctor', 'now'], 'unexpected argument "now"'],
    [['doctor', '--url'], '--url needs a value: --url URL'],
    [['doctor', '--url', '--json'], '--url needs a value: --url URL'],
    [['doctor', '--json=yes'], '--json takes no value'],
    [['doctor', '--pings', 'many'], '--pings: expected a whole number from 1 to 10000, got "many"'],
    [['doctor', '--pings', '0'], '--pings: expected a whole number from 1 to 10000, got "0"'],
    [
      ['doctor', '--timeout', '15'],
      '--timeout: expected a duration from 100ms to 600s, such as 500ms or 10s, got "15"',
    ],
    [['doctor', '--cacert', '/nowhere/ca.pem'], '--cacert: cannot read "/nowhere/ca.pem" (ENOENT)'],
  ])('a wrong command line ends with 2 and one sentence: %j', async (args, sentence) => {
    const { code, stdout, stderr } = await sluice(args, { REDIS_URL: 'redis://127.0.0.1:1' })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr.split('\n')[0]).toBe(`sluice: ${sentence}`)
    expect(stderr).toContain('--help shows what there is')
  })

  test('doctor without a URL names REDIS_URL', async () => {
    const { code, stderr } = await sluice(['doctor'])
    expect(code).toBe(2)
    expect(stderr).toContain('set REDIS_URL')
  })

  test.each([
    'localhost:6379',
    'http://:hunter2@localhost',
    'redis://:hunter2@local host',
    'redis://:hunter2%@localhost',
    'redis://:hunter2@localhost/first',
    'redis://:hunter2@localhost:port',
    'hunter2',
    'redis://hunter2@localhost',
  ])('a malformed URL is rejected without repeating it: %s', async (url) => {
    for (const [args, env] of [
      [['doctor'], { REDIS_URL: url }],
      [['doctor', '--url', url], {}],
    ] as const) {
      const { code, stdout, stderr } = await sluice(args, env)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^sluice: (REDIS_URL|--url)/)
      expect(stderr).not.toContain('hunter2')
    }
  })
})

test('a password in the arguments is used, with advice against it', async () => {
  const { stdout, stderr } = await sluice(['doctor', '--url', 'redis://:hunter2@127.0.0.1:1'])
  expect(stderr).toContain('put it into REDIS_URL')
  expect(stdout + stderr).not.toContain('hunter2')
})

describe('the program', () => {
  beforeAll(() => ensureBuilt('core', 'policies', 'prometheus', 'console', 'cli'))

  function program(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
    const { PATH = '' } = process.env
    return new Promise((resolve) => {
      const child = execFile(process.execPath, [BIN, ...args], { env: { PATH, ...env } }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      )
    })
  }

  test('the program prints the version of the package', async () => {
    expect(await program(['--version'])).toEqual({ code: 0, stdout: `${MANIFEST.version}\n`, stderr: '' })
  })

  test.runIf(existsSync('/dev/full'))('an output that cannot be written is a sentence, and the exit code 2', () => {
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [BIN, '--help'], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    expect([status, String(stderr)]).toEqual([
      2,
      'sluice: cannot write the output (ENOSPC: no space left on device, write)\n',
    ])
  })

  test('the program ends with an exit code and no stack if nothing listens', async () => {
    const { code, stdout, stderr } = await program(['doctor'], { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' })
    expect([code, stderr]).toEqual([2, ''])
    expect(stdout).toContain('nothing listens there (ECONNREFUSED)')
    expect(stdout).toContain('→ Check that Redis runs')
    expect(stdout).not.toMatch(/hunter2|\n {4}at /)
  })
})
