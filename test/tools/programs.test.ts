import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { adviceFor, announcement, findProgram, installPlan, mayInstall } from '../../scripts/lib/system-program.js'
import { answers, chromiumPath, PROGRAMS, versionProblem } from '../../scripts/programs.js'

const { curl, nginx, redisServer } = PROGRAMS

const having =
  (...programs: string[]) =>
  (program: string) =>
    programs.includes(program)

describe('installing programs', () => {
  test('the system package is installed as root, even if updating the package lists fails', () => {
    const plan = installPlan([redisServer], { isRoot: true, maySudo: false, has: having('apt-get') })
    expect(plan.map(({ command, args }) => [command, ...args].join(' '))).toEqual([
      'env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 update',
      'env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends redis-server',
    ])
    expect(plan.map((step) => step.optional)).toEqual([true, false])
  })

  test('the installation uses sudo if that needs no password', () => {
    const plan = installPlan([redisServer], { isRoot: false, maySudo: true, has: having('apt-get', 'sudo') })
    expect(plan.map(({ command, args }) => [command, ...args.slice(0, 2)].join(' '))).toEqual([
      'sudo -n env',
      'sudo -n env',
    ])
  })

  test('nothing is installed without root, sudo or apt', () => {
    expect(installPlan([redisServer], { isRoot: false, maySudo: false, has: having('apt-get') })).toEqual([])
    expect(installPlan([redisServer], { isRoot: true, maySudo: true, has: having('apk') })).toEqual([])
  })

  test('nginx is installed by the name of its package', () => {
    const plan = installPlan([nginx], { isRoot: true, maySudo: false, has: having('apt-get') })
    expect(plan.at(-1)?.args.slice(-2)).toEqual(['--no-install-recommends', 'nginx'])
  })

  test('all missing programs are installed at once, after an announcement', () => {
    const plan = installPlan([redisServer, nginx, curl], { isRoot: true, maySudo: false, has: having('apt-get') })
    expect(plan).toHaveLength(2)
    expect(plan.at(-1)?.args.slice(-3)).toEqual(['redis-server', 'nginx', 'curl'])
    const text = announcement([redisServer, nginx, curl], plan)
    expect(text).toMatch(
      /^Missing: redis-server, nginx, curl\. Installing the system packages redis-server, nginx, curl /,
    )
    expect(text).toContain('SLUICE_NO_INSTALL=1 prevents this')
    for (const { command, args } of plan) expect(text).toContain([command, ...args].join(' '))
    expect(text).not.toContain('\n')
  })

  test.each([
    ['', true],
    ['0', true],
    ['1', false],
    ['yes', false],
  ])('with SLUICE_NO_INSTALL=%s programs may be installed: %s', (setting, may) => {
    expect(mayInstall(setting)).toBe(may)
  })
})

describe('a machine where packages can be installed without a password', () => {
  const script = fileURLToPath(new URL('../../scripts/programs.js', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const log = join(folder, 'log')
  const program = (name: string, body: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  }
  // These would install, as root and through sudo; here they log their arguments.
  program('apt-get', '')
  program('env', `echo "$@" >> ${log}`)
  program('sudo', `test "$2" = true || echo "$@" >> ${log}`)
  afterAll(() => rmSync(folder, { recursive: true }))
  const ensure = (env: NodeJS.ProcessEnv) =>
    spawnSync(process.execPath, [script], { env: { PATH: folder, ...env }, encoding: 'utf8' })

  test('with SLUICE_NO_INSTALL=1 nothing is installed, and one list names everything that is missing', () => {
    const { status, stdout, stderr } = ensure({ SLUICE_NO_INSTALL: '1' })
    expect(status).toBe(1)
    // nginx, PostgreSQL and haproxy are also searched for outside of PATH, so they may be found.
    expect(stderr).toMatch(
      /^The tests need the programs redis-server, (nginx, )?(postgres, )?curl, prometheus, caddy, (haproxy, )?python3, and they are not on PATH; run: sudo apt-get install redis-server (nginx )?(postgresql )?curl prometheus caddy (haproxy )?python3\n$/,
    )
    expect(stdout).toBe('')
    expect(existsSync(log)).toBe(false)
  })

  test('the script runs exactly the commands that it announced', () => {
    const { status, stdout, stderr } = ensure({})
    const commands = readFileSync(log, 'utf8').trim().split('\n')
    expect(commands).toHaveLength(2)
    expect(stdout).toMatch(/^Missing: redis-server, .*python3\. Installing /)
    for (const command of commands) expect(stdout).toContain(command)
    // The installation did not help, so the error names the command.
    expect(stderr).toContain('run: sudo apt-get install redis-server')
    expect(status).toBe(1)
  })
})

describe('the advice', () => {
  test.each([
    ['apt-get', 'sudo apt-get install redis-server'],
    ['apk', 'apk add redis'],
    ['dnf', 'sudo dnf install redis'],
    ['brew', 'brew install redis'],
  ])('the advice with %s is: %s', (program, command) => {
    expect(adviceFor([redisServer], { platform: 'linux', has: having(program) })).toBe(
      `The tests need the program redis-server, and it is not on PATH; run: ${command}`,
    )
  })

  test('the advice for several programs is one command', () => {
    expect(adviceFor([redisServer, nginx], { platform: 'linux', has: having('apk') })).toBe(
      'The tests need the programs redis-server, nginx, and they are not on PATH; run: apk add redis nginx',
    )
  })

  test('the advice without a known package manager names the requirement', () => {
    expect(adviceFor([redisServer], { platform: 'sunos', has: having() })).toContain('install Redis 7 or later (sunos)')
  })
})

describe('a machine without redis-server and any way to install it', () => {
  const script = fileURLToPath(new URL('../../scripts/programs.js', import.meta.url))
  const ensureRedis = (env: NodeJS.ProcessEnv) =>
    spawnSync(process.execPath, [script, 'redis-server'], { env: { PATH: '/nowhere', ...env }, encoding: 'utf8' })

  test('without redis-server the start fails and names it', () => {
    const { status, stderr } = ensureRedis({})
    expect(stderr).toContain('The tests need the program redis-server, and it is not on PATH; install Redis 7 or later')
    expect(status).toBe(1)
  })

  test('an unreachable REDIS_URL fails as well, without showing its password', () => {
    const { status, stdout, stderr } = ensureRedis({ REDIS_URL: 'redis://:secret@127.0.0.1:1' })
    expect(status).toBe(1)
    expect(stdout + stderr).not.toContain('secret')
  })
})

test('without nginx and any way to install it the advice names the requirement', () => {
  const want = { ...nginx, folders: [] }
  expect(adviceFor([want], { platform: 'linux', has: having('dnf') })).toBe(
    'The tests need the program nginx, and it is not on PATH; run: sudo dnf install nginx',
  )
  expect(adviceFor([want], { platform: 'linux', has: having() })).toContain('install nginx 1.19.5 or later (linux)')
})

describe('the version', () => {
  test.each(['Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64', 'Valkey server v=8.1.0 sha=0'])(
    'the version is new enough: %s',
    (output) => expect(versionProblem(output)).toBeUndefined(),
  )

  test('a version below 7 is rejected with both versions', () => {
    expect(versionProblem('Redis server v=6.0.16 sha=0')).toBe('Redis 7 or later is needed, this is 6.0.16')
  })

  test('an unreadable version is a problem', () => {
    expect(versionProblem('hello')).toBe('cannot read its version from "hello"')
  })
})

describe('finding a program', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('findProgram returns the first executable file on the path, and nothing else', () => {
    writeFileSync(join(folder, 'tool'), '')
    const path = ['', join(folder, 'missing'), folder].join(delimiter)
    expect(findProgram('tool', path)).toBeUndefined()
    chmodSync(join(folder, 'tool'), 0o755)
    expect(findProgram('tool', path)).toBe(join(folder, 'tool'))
    expect(findProgram('other', path)).toBeUndefined()
  })
})

test('CHROMIUM names the browser for the documentation, and a wrong path is rejected', () => {
  expect(chromiumPath({ CHROMIUM: process.execPath, PATH: '' })).toBe(process.execPath)
  expect(chromiumPath({ PATH: '' })).toBeUndefined()
  expect(() => chromiumPath({ CHROMIUM: '/nowhere/chromium' })).toThrow(
    'CHROMIUM: expected the path of a Chromium, got /nowhere/chromium',
  )
})

describe('REDIS_URL', () => {
  test('REDIS_URL counts as reachable while something listens there', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `redis://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}/0`
    expect(await answers(url)).toBe(true)
    server.close()
    await once(server, 'close')
    expect(await answers(url)).toBe(false)
  })

  test('a malformed REDIS_URL is not reachable', async () => {
    expect(await answers('127.0.0.1')).toBe(false)
  })
})
