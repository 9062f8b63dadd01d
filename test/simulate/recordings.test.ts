// Runs alone: one recording at a time in a process.

import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { concurrency, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import { simulate } from '@sluice/simulate'
import { type RecordingOptions, startRecording } from '@sluice/simulate/recording'
import express from 'express'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { sluice } from '../cli/support.js'
import { ensureBuilt } from '../support/built-core.js'
import { until } from '../support/until.js'
import { createGuardOfTexts } from './guard-of-texts.js'
import { HOSTILE } from './hostile-texts.js'
import { differing, filesOfRecording, replayed } from './recorded.js'

const SECRET = 'a secret of all processes'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-recording-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function recordTo(file: string, options: Partial<RecordingOptions> = {}) {
  const recording = startRecording({ file, secret: SECRET, ...options })
  onTestFinished(() => recording.stop())
  return recording
}

const DOCUMENT = {
  version: 1,
  policies: {
    log: { match: { paths: ['/log/**'] }, limits: [{ limit: 3, window: '2s' }] },
    fixed: { match: { paths: ['/fixed'] }, limits: [{ algorithm: 'fixedWindow', limit: 4, window: '3s' }] },
    gcra: { match: { paths: ['/gcra'] }, limits: [{ algorithm: 'gcra', limit: 2, burst: 2, window: '1s' }] },
    both: { match: { paths: ['/log/both'] }, key: 'user', anonymous: 'by-ip', limits: [{ limit: 9, window: '5s' }] },
    tiered: {
      match: { paths: ['/tiered'] },
      key: 'user',
      anonymous: 'by-ip',
      tier: 'plan',
      tiers: { free: [{ limit: 2, window: '3s' }], paid: [{ limit: 6, window: '3s' }] },
    },
    priced: { match: { paths: ['/priced'] }, cost: 'pages', limits: [{ limit: 10, window: '4s' }] },
    keyed: { match: { paths: ['/keyed'] }, key: 'header:x-api-key', limits: [{ limit: 3, window: '2s' }] },
    tenants: { match: { paths: ['/tenants'] }, key: 'tenant', limits: [{ limit: 5, window: '2s' }] },
    banned: {
      match: { paths: ['/banned'] },
      limits: [{ limit: 2, window: '1s' }],
      ban: { by: 'ip', after: 2, within: '10s', for: ['900ms'] },
    },
    watched: { match: { paths: ['/watched'] }, enforce: { mode: 'report' }, limits: [{ limit: 2, window: '2s' }] },
  },
}

const headerOf = (name: string) => (request: { get(name: string): string | undefined }) => request.get(name)
const RESOLVERS = {
  keys: { user: headerOf('x-user'), tenant: headerOf('x-tenant') },
  tiers: { plan: (request: { get(name: string): string | undefined }) => request.get('x-tier') ?? 'free' },
  costs: { pages: (request: { get(name: string): string | undefined }) => Number(request.get('x-pages') ?? 1) },
}

/** A server of Express whose clients name their own addresses. */
async function serve(document: object): Promise<string> {
  const loaded = await policies.from({ object: document, ...RESOLVERS } as never)
  const app = express()
  app.set('trust proxy', 'loopback')
  app.use(rateLimit({ policies: loaded, store: memoryStore(), warnings: { SLUICE_ONE_CLIENT: false } } as never))
  app.use((_request, response) => {
    response.send('ok')
  })
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = createServer(app).listen(0, '127.0.0.1', () => resolve(listening))
  })
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await loaded.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Sends requests of a few clients to every policy, several at a time. */
async function visit(origin: string, rounds: number): Promise<void> {
  const paths = ['/log/a', '/log/both', '/fixed', '/gcra', '/tiered', '/priced', '/keyed', '/tenants', '/banned']
  for (let n = 0; n < rounds; n++) {
    await Promise.all(
      [...paths, '/watched'].map(async (path, i) => {
        const client = (n * 7 + i) % 5
        const response = await fetch(`${origin}${path}?secret=query`, {
          headers: {
            'x-forwarded-for': client === 4 ? '2001:db8:1:2::7' : `198.51.100.${client}`,
            'x-tier': n % 2 === 0 ? 'free' : 'paid',
            'x-pages': String(1 + (n % 3)),
            'x-api-key': `key-${client % 2}`,
            'x-tenant': `tenant-${client % 3}`,
            ...(client !== 3 && { 'x-user': `user-${client % 2}` }),
          },
        })
        await response.arrayBuffer()
      }),
    )
  }
}

test('records of a server, replayed by the document that decided, give the same decisions', async () => {
  const file = join(folder(), 'requests.log')
  const origin = await serve(DOCUMENT)
  const recording = recordTo(file)
  // At once, so that some are refused however busy the machine is.
  await Promise.all(Array.from({ length: 20 }, () => fetch(`${origin}/log/a`)))
  await visit(origin, 60)
  await recording.stop()
  expect(recording).toMatchObject({ written: 620, dropped: 0 })
  const requests = await replayed([file], DOCUMENT)
  expect(requests).toHaveLength(620)
  expect(differing(requests)).toEqual([])
  const refused = new Set(requests.filter(({ isAdmitted }) => !isAdmitted).map(({ line }) => line.path))
  expect(refused.size).toBeGreaterThan(0)
  expect(requests.some(({ line }) => line.path === '/watched' && line.reported === 'limited')).toBe(true)
})

test('a simulation of records predicts what report mode reported, request by request', async () => {
  const file = join(folder(), 'requests.log')
  const watched = { match: { paths: ['/**'] }, limits: [{ limit: 7, window: '2s' }] }
  const origin = await serve({ version: 1, policies: { watched: { ...watched, enforce: { mode: 'report' } } } })
  const recording = recordTo(file)
  await visit(origin, 30)
  await recording.stop()
  const reported = readFileSync(file, 'utf8').match(/"reported":"limited"/g)?.length
  expect(reported).toBeGreaterThan(0)
  const report = await simulate({ logs: [file], document: { version: 1, policies: { watched } } })
  // An enforced limit refuses what report mode reported: neither counts a refused request.
  expect(report.policies[0]?.requests.refused).toMatchObject({ min: reported, max: reported })
})

test('a recording is for its owner alone, and has no identity in clear', async () => {
  const file = join(folder(), 'requests.log')
  const origin = await serve(DOCUMENT)
  const recording = recordTo(file)
  await fetch(`${origin}/log/user-name?token=query`, {
    headers: { 'x-forwarded-for': '203.0.113.77', 'x-user': 'user-name', host: 'api.example.com' },
  })
  await fetch(`${origin}/keyed`, { headers: { 'x-forwarded-for': '2001:db8:aa:bb::cc', 'x-api-key': 'the-api-key' } })
  await fetch(`${origin}/log/both/user-name`, { headers: { 'x-user': 'user-name' } })
  await fetch(`${origin}/tenants`, { headers: { 'x-tenant': 'tenant-name' } })
  await recording.stop()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const text = readFileSync(file, 'utf8')
  for (const clear of ['203.0.113', '2001:db8', 'the-api-key', 'query', 'tenant-name', SECRET]) {
    expect(text).not.toContain(clear)
  }
  const [head, first, second] = text.split('\n')
  expect(head).toMatch(/^#sluice-recording \{"version":1,"secret":"[\w-]{16}","share":1\}$/)
  expect(JSON.parse(first as string)).toMatchObject({
    method: 'GET',
    path: '/log/user-name',
    status: 200,
    outcome: 'admitted',
    ip: [expect.stringMatching(/^[\w-]{16}$/), expect.stringMatching(/^[\w-]{16}$/)],
    duration: expect.any(Number),
  })
  expect(JSON.parse(second as string)).toMatchObject({
    ip: { length: 3 },
    ids: { 'header:x-api-key': expect.stringMatching(/^[\w-]{16}$/) },
  })
})

test('no piece of a path has an identity of any length in clear, also of composed keys', async () => {
  const composed = {
    match: { paths: ['/**'] },
    key: ['user', 'tenant'],
    anonymous: 'skip',
    limits: [{ limit: 1e6, window: '1m' }],
  }
  const origin = await serve({ version: 1, policies: { composed, ...DOCUMENT.policies } })
  const file = join(folder(), 'requests.log')
  const recording = recordTo(file)
  const lengths = [9, 100, 255, 256, 257, 300, 1100, 3000]
  for (const user of lengths) {
    for (const tenant of lengths) {
      const headers = { 'x-user': 'u'.repeat(user), 'x-tenant': 't'.repeat(tenant) }
      await fetch(`${origin}/tenants/${headers['x-user']}/x/${headers['x-tenant']}`, { headers })
      await fetch(`${origin}/${'p'.repeat(1000)}/${headers['x-tenant']}`, { headers })
    }
  }
  await recording.stop()
  const text = readFileSync(file, 'utf8')
  expect(text.split('\n').filter((line) => line.startsWith('{'))).toHaveLength(2 * lengths.length ** 2)
  expect(text).not.toMatch(/u{9}|t{9}/)
})

test('an accepted WebSocket has the status 101', async () => {
  const upgrades = express()
  upgrades.use(rateLimit({ limits: [concurrency({ limit: 1 })], store: memoryStore() }))
  const sockets = new WebSocketServer({ noServer: true })
  const server = createServer(express())
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const response = new ServerResponse(request)
    response.assignSocket(socket as Socket)
    response.on('finish', () => socket.end())
    upgrades(request as never, response as never, () => sockets.handleUpgrade(request, socket, head, () => {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
  const file = join(folder(), 'requests.log')
  const recording = recordTo(file)
  const connect = (outcome: 'open' | 'error') => {
    const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/feed`)
    return new Promise<WebSocket>((resolve) => socket.once(outcome, () => resolve(socket)))
  }
  const accepted = await connect('open')
  await connect('error')
  accepted.close()
  await until('both are recorded', async () => recording.written === 2)
  await recording.stop()
  const records = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
  expect(records.map((line) => JSON.parse(line).status)).toEqual([429, 101])
})

test('hostile paths, hosts and names break no line', async () => {
  const file = join(folder(), 'requests.log')
  const document = {
    version: 1,
    policies: { all: { key: 'user', anonymous: 'by-ip', limits: [{ limit: 1000, window: '1m' }] } },
  }
  const hostile = [...HOSTILE, `/${'x'.repeat(5000)}`, '\u2028\u0085\n', '/%0a%0d%00', '%', '%ff']
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file)
  for (const text of hostile) {
    await guard({ method: text, target: text, host: text, user: text === '' ? undefined : text, ip: text })
    await guard({ method: 'GET', target: `/${text}`, host: text, user: `${text}-name`, ip: '192.0.2.7' })
  }
  await recording.stop()
  const lines = readFileSync(file, 'utf8').split('\n')
  expect(lines.pop()).toBe('')
  expect(lines).toHaveLength(1 + recording.written)
  for (const line of lines.slice(1)) {
    expect(line.length).toBeLessThan(20_000)
    expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
    JSON.parse(line)
  }
  expect(lines.join('\n')).not.toContain('-name')
  expect(lines.join('\n')).not.toContain('192.0.2')
  const report = await simulate({ logs: [file], document, isLenient: true })
  expect(report.log.unread.count).toBe(0)
  expect(report.requests.total).toBe(recording.written)
})

test('a share is of clients: each has all of its requests recorded, or none', async () => {
  const file = join(folder(), 'requests.log')
  const document = { version: 1, policies: { all: { limits: [{ limit: 100, window: '1m' }] } } }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file, { share: 0.25 })
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 400; n++) {
      await guard({
        method: 'GET',
        target: '/',
        host: 'h',
        user: undefined,
        ip: `198.51.${n % 200}.${n < 200 ? 1 : 2}`,
      })
    }
  }
  await recording.stop()
  const report = await simulate({ logs: [file], document, identities: 'plain' })
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line))
  const counts = new Map<string, number>()
  for (const { ip } of lines) counts.set(ip.join(), (counts.get(ip.join()) ?? 0) + 1)
  expect(new Set(counts.values())).toEqual(new Set([3]))
  // Of 200 networks with two clients each.
  expect(counts.size % 2).toBe(0)
  expect(counts.size).toBeGreaterThan(40)
  expect(counts.size).toBeLessThan(180)
  expect(report.caveats.join()).toContain('has the requests of 25 % of the networks')
})

test('a client in a report has the HMAC of its address', async () => {
  const file = join(folder(), 'requests.log')
  const document = { version: 1, policies: { all: { limits: [{ limit: 2, window: '1m' }] } } }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file)
  for (let n = 0; n < 3; n++) await guard({ method: 'GET', target: '/', host: 'h', user: undefined, ip: '192.0.2.7' })
  await recording.stop()
  const hmac = createHmac('sha256', SECRET).update('ip:192.0.2.7').digest('base64url').slice(0, 16)
  const report = await simulate({ logs: [file], document, identities: 'plain', good: [`.ip=${hmac}`] })
  expect(report.refused.map(({ identity }) => identity)).toEqual([`ip=~${hmac}`])
  expect(report.good?.refused).toHaveLength(1)
})

test('what recordings cannot be matched with is named', async () => {
  const file = join(folder(), 'requests.log')
  const document = {
    version: 1,
    policies: {
      api: { allow: { ip: ['192.0.2.7'] }, key: { ip: { ipv6Prefix: 56 } }, limits: [{ limit: 2, window: '1m' }] },
    },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.8' }, limits: [{ limit: 6 }] }],
  }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file)
  await guard({ method: 'GET', target: '/', host: 'h', user: undefined, ip: '192.0.2.9' })
  await recording.stop()
  const { caveats } = await simulate({ logs: [file], document })
  expect(caveats.find((each) => each.startsWith('Recordings'))).toBe(
    'Recordings have HMACs of clients, which match nothing of this: "api": allow, "api": ipv6Prefix 56 and overrides of "api". It had no effect, or one on all.',
  )
})

test('recordings of two secrets are not replayed together, nor one beside another log', async () => {
  const path = folder()
  const document = { version: 1, policies: { all: { limits: [{ limit: 2, window: '1m' }] } } }
  const guard = await createGuardOfTexts(document)
  const [one, other] = [join(path, 'one.log'), join(path, 'other.log')]
  for (const [file, secret] of [
    [one, SECRET],
    [other, `${SECRET} 2`],
  ] as const) {
    const recording = startRecording({ file, secret })
    await guard({ method: 'GET', target: '/', host: 'h', user: undefined, ip: '192.0.2.9' })
    await recording.stop()
  }
  await expect(simulate({ logs: [one, other], document })).rejects.toThrow(
    `"${one}" and "${other}" are recordings by two secrets: their clients cannot be matched`,
  )
  const both = join(path, 'both.log')
  writeFileSync(both, readFileSync(one, 'utf8') + readFileSync(other, 'utf8'))
  await expect(simulate({ logs: [both], document })).rejects.toThrow('recordings by two secrets')
  const access = join(path, 'access.log')
  writeFileSync(access, '192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5\n')
  await expect(simulate({ logs: [access, one], document })).rejects.toThrow(
    `"${one}" is a recording, and "${access}" is none: their clients cannot be matched`,
  )
})

test('a recording of a newer version, or with a damaged head, is an error that says so', async () => {
  const file = join(folder(), 'requests.log')
  const document = { version: 1, policies: { all: { limits: [{ limit: 2, window: '1m' }] } } }
  writeFileSync(file, '#sluice-recording {"version":2,"secret":"x","share":1}\n{"at":1}\n')
  await expect(simulate({ logs: [file], document })).rejects.toThrow(
    `"${file}" is a recording of version 2, and this program reads up to version 1: install a newer @sluice/cli`,
  )
  writeFileSync(file, '#sluice-recording {"version":1\n')
  await expect(simulate({ logs: [file], document })).rejects.toThrow('damaged first line')
})

test('full files are kept beside the file, up to a size of all', async () => {
  const file = join(folder(), 'requests.log')
  const document = { version: 1, policies: { all: { limits: [{ limit: 1, window: '1m' }] } } }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file, { maxBytes: 1024 * 1024 })
  for (let n = 0; n < 12; n++) {
    for (let i = 0; i < 100; i++) {
      await guard({ method: 'GET', target: '/x'.repeat(450), host: 'h', user: undefined, ip: `192.0.2.${i}` })
    }
    await expect.poll(() => recording.written).toBe(100 * (n + 1))
  }
  await recording.stop()
  const files = filesOfRecording(file)
  expect(files.map((each) => each.slice(file.length))).toEqual(['', '.1', '.2', '.3', '.4', '.5', '.6', '.7'])
  const sizes = files.map((each) => statSync(each).size)
  expect(Math.max(...sizes)).toBeLessThanOrEqual((1024 * 1024) / 8)
  const report = await simulate({ logs: files, document })
  expect(report.log.unread.count).toBe(0)
  expect(report.requests.total).toBeGreaterThan(700)
  // The next process goes on in a file of its own.
  await recordTo(file, { maxBytes: 1024 * 1024 }).stop()
})

test('where space runs out, records are dropped and counted, and no line is broken', async () => {
  ensureBuilt('core', 'policies', 'simulate', 'express')
  const file = join(folder(), 'requests.log')
  const program = `import { createGuard } from '@sluice/core/http'
    import { startRecording } from '@sluice/simulate/recording'
    import { createRequire } from 'node:module'
    import { setTimeout } from 'node:timers/promises'
    const recording = startRecording({ file: process.argv[1], secret: 'a secret of all processes' })
    const guard = createGuard({ limit: 1e6, window: '1m', warnings: { SLUICE_ONE_CLIENT: false } })
    for (let round = 0; round < 8; round++) {
      for (let n = 0; n < 200; n++) {
        const response = { headersSent: false, writableFinished: false, destroyed: false, statusCode: 200, removeListener() {},
          on: (_, ended) => (response.ended = ended) }
        const context = { request: {}, response, ip: '192.0.2.7', method: 'GET', path: '/' + n, target: '/' + n, route: undefined,
          header: () => 'host', signedCookie() {}, getResponseHeader() {} }
        await guard(context)
        Object.assign(response, { headersSent: true, writableFinished: true })
        response.ended()
      }
      await setTimeout(150)
    }
    await recording.stop()
    const { cache } = createRequire(import.meta.url)
    const isLean = !Object.keys(cache).some((file) => /policies|simulate.dist.program/.test(file))
    console.log(JSON.stringify({ written: recording.written, dropped: recording.dropped, isLean }))`
  // A bound on the size of files is as a full disk, and needs no disk of its own.
  const bounded = `trap '' XFSZ; ulimit -f 100; exec "$0" "$@"`
  const args = ['-c', bounded, process.execPath, '--input-type=module', '-e', program, file]
  const { stdout, stderr } = spawnSync('bash', args, { encoding: 'utf8', cwd: import.meta.dirname })
  expect(stderr).toContain('SLUICE_RECORDING_FAILED')
  expect(stderr).toContain('it is larger than this user may write (EFBIG)')
  const { written, dropped, isLean } = JSON.parse(stdout)
  // The entry loads nothing of the replay.
  expect(isLean).toBe(true)
  expect(written + dropped).toBe(1600)
  expect(Math.min(written, dropped)).toBeGreaterThan(0)
  const lines = readFileSync(file, 'utf8').split('\n')
  expect(lines.pop()).toBe('')
  expect(lines.filter((line) => line.startsWith('{'))).toHaveLength(written)
  for (const line of lines) if (!line.startsWith('#')) JSON.parse(line)
})

test('records have dates, also after the clock of the machine was corrected, and their replay gives the same windows', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.UTC(2026, 0, 1) })
  onTestFinished(() => void vi.useRealTimers())
  const file = join(folder(), 'requests.log')
  const fixed = { limits: [{ algorithm: 'fixedWindow', limit: 2, window: '10s' }] }
  const document = { version: 1, policies: { fixed } }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file)
  const send = () => guard({ method: 'GET', target: '/', host: 'h', user: undefined, ip: '192.0.2.7' })
  await send()
  vi.setSystemTime(Date.now() + 3_604_000)
  const first = Date.now()
  for (let second = 0; second < 40; second++) {
    await send()
    vi.advanceTimersByTime(1000)
  }
  await recording.stop()
  const requests = await replayed([file], document)
  expect(requests).toHaveLength(41)
  expect(requests[1]?.line.time).toBe(first)
  expect(differing(requests)).toEqual([])
})

test('the number of missing records is in the file and in the report', async () => {
  const file = join(folder(), 'requests.log')
  const document = { version: 1, policies: { all: { limits: [{ limit: 2, window: '1m' }] } } }
  const guard = await createGuardOfTexts(document)
  const recording = recordTo(file)
  // More than waits for a disk.
  for (let n = 0; n < 3000; n++) {
    await guard({ method: 'GET', target: '/x'.repeat(450), host: 'h', user: undefined, ip: '192.0.2.7' })
  }
  await expect.poll(() => recording.written).toBeGreaterThan(0)
  await guard({ method: 'GET', target: '/', host: 'h', user: undefined, ip: '192.0.2.7' })
  await recording.stop()
  expect(recording.dropped).toBeGreaterThan(1000)
  expect(recording.written + recording.dropped).toBe(3001)
  const report = await simulate({ logs: [file], document })
  expect(report.requests.total).toBe(recording.written)
  expect(report.caveats.join()).toContain(`lacks ${recording.dropped} requests, which could not be written in time`)
})

test('files of others and links stay as they are', () => {
  const path = folder()
  const [other, link] = [join(path, 'other.log'), join(path, 'link.log')]
  writeFileSync(other, 'somebody else')
  symlinkSync(other, link)
  const refused = (file: string) => () => startRecording({ file, secret: SECRET })
  expect(refused(other)).toThrow(`cannot write "${other}": it exists, and is no recording; name another file`)
  expect(refused(link)).toThrow('it is a symbolic link')
  expect(refused(path)).toThrow('it is a folder')
  expect(refused('/dev/full')).toThrow('it is no regular file')
  expect(refused(join(path, 'none', 'x.log'))).toThrow('the folder does not exist')
  writeFileSync(join(path, 'requests.log.3'), 'somebody else')
  expect(refused(join(path, 'requests.log'))).toThrow('requests.log.3')
  expect(readFileSync(other, 'utf8')).toBe('somebody else')
})

test.each([
  [{ secret: SECRET }, 'file: expected the path of a file'],
  [{ file: 'x' }, 'secret: expected a string of 16 characters or more'],
  [{ file: 'x', secret: 'short' }, 'secret: expected a string of 16 characters or more'],
  [{ file: 'x', secret: SECRET, share: 0 }, 'share: expected a number above 0 and up to 1, got 0'],
  [{ file: 'x', secret: SECRET, share: '10%' }, 'share: expected a number above 0 and up to 1'],
  [{ file: 'x', secret: SECRET, maxBytes: 5 }, 'maxBytes: expected a whole number from 1048576, got 5'],
  [{ file: 'x', secret: SECRET, shares: 1 }, 'shares'],
])('options %j are rejected', (options, message) => {
  expect(() => startRecording(options as never)).toThrow(message)
})

test('sluice serve --record needs a secret', async () => {
  const serveArgs = ['serve', '--document', 'x.yaml', '--dialect', 'json']
  expect((await sluice([...serveArgs, '--record', 'x.log'])).stderr).toContain('SLUICE_RECORD_SECRET')
  expect((await sluice([...serveArgs, '--record-share', '10%'])).stderr).toContain(
    '--record-share: expected --record FILE',
  )
  expect((await sluice([...serveArgs, '--record', 'x.log', '--record-share', '0%'])).stderr).toContain('above 0%')
})
