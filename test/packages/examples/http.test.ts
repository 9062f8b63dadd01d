// Release: runs examples. Takes long: begins first.
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { type Program, startExample } from './program.js'

const SERVERS = ['express', 'koa', 'fastify'] as const

/** If the ports are not free, the demo ends, and the next three are tried. */
async function startDemo(env: Record<string, string> = {}): Promise<{ demo: Program; ports: number[] }> {
  for (let tries = 0; ; tries++) {
    const port = await freePort()
    try {
      const demo = await startExample('demo/main.js', 5, { REDIS_URL: '', ...env, PORT: String(port) })
      return { demo, ports: [port, port + 1, port + 2] }
    } catch (error) {
      if (tries > 5 || !/EADDRINUSE/.test(String(error))) throw error
    }
  }
}

async function tryResponders(url: string): Promise<void> {
  const timed = async (path: string, headers: Record<string, string> = {}) => {
    const startedAt = performance.now()
    const response = await fetch(url + path, { headers })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, took: performance.now() - startedAt }
  }
  const help = (await timed('/')).text
  for (const path of ['/slow', '/queue', '/download', '/busy', '/reported', '/login']) expect(help).toContain(path)

  const reported = await Promise.all(Array.from({ length: 5 }, () => timed('/reported')))
  expect(reported.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  const beyond = reported.filter(({ text }) => !JSON.parse(text).allowed)
  expect(beyond.length).toBeGreaterThan(0)
  expect(JSON.parse(beyond[0]?.text ?? '')).toMatchObject({ allowed: false, reported: true })
  expect(beyond[0]?.headers.get('ratelimit')).toBeNull()

  const login = async () => {
    const response = await fetch(`${url}/login`, { method: 'POST' })
    const { date: _date, ...headers } = Object.fromEntries(response.headers)
    return { status: response.status, headers, text: await response.text() }
  }
  const startedAt = performance.now()
  const real = await login()
  expect(real).toMatchObject({ status: 200, text: expect.stringContaining('"ok":true') })
  expect(await Promise.all([login(), login(), login()])).toEqual([real, real, real])
  const { logins } = JSON.parse((await timed('/login')).text)
  expect(logins).toBeGreaterThanOrEqual(2)
  // One more returns every 5 s.
  expect(logins).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 5000)

  const busy = async () => {
    const seen = await Promise.all([timed('/busy'), timed('/busy'), timed('/busy')])
    expect(seen.map(({ status }) => status).sort()).toEqual([200, 200, 429])
  }
  const queue = async () => {
    let served = 0
    const low = Array.from({ length: 6 }, async () => {
      const response = await timed('/queue')
      served++
      return response
    })
    await sleep(100)
    const high = await timed('/queue', { 'x-api-key': 'gold' })
    const before = served
    const waits = (await Promise.all(low)).map(({ took }) => took).sort((a, b) => a - b)
    expect(high.status).toBe(200)
    // Usually in the second pair; in order of arrival it would be the last.
    expect(before).toBeLessThan(6)
    expect(waits[5]).toBeGreaterThan(2900)
  }
  const download = async () => {
    const { text, took } = await timed('/download')
    expect(text).toHaveLength(1024 * 1024)
    expect(took).toBeGreaterThan(2800)
  }
  const slow = async () => {
    const seen = [await timed('/slow'), await timed('/slow'), await timed('/slow')]
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(seen[1]?.took).toBeLessThan(4500)
    // The third waits for what is left of 5 s since the first.
    expect(seen.reduce((sum, { took }) => sum + took, 0)).toBeGreaterThan(4900)
  }
  await Promise.all([busy(), queue(), download(), slow()])
}

/** Of twice as many requests at once as a limit, as many are admitted, and what returns to it while they run. */
async function tryLimit(limit: number, windowMs: number, send: (n: number) => Promise<{ status: number }>) {
  const startedAt = performance.now()
  const responses = await Promise.all(Array.from({ length: 2 * limit }, (_, n) => send(n)))
  const returned = ((performance.now() - startedAt) * limit) / windowMs
  const admitted = responses.filter(({ status }) => status === 200).length
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(2 * limit - admitted)
  expect(admitted).toBeGreaterThanOrEqual(limit)
  expect(admitted).toBeLessThanOrEqual(limit + returned)
}

async function tryOut(ports: readonly number[]): Promise<void> {
  for (const [i, server] of SERVERS.entries()) {
    const url = `http://localhost:${ports[i]}`
    const get = async (path: string) => {
      const response = await fetch(url + path)
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
    const statuses = async (path: string, times: number) => {
      const seen: number[] = []
      for (let n = 0; n < times; n++) seen.push((await get(path)).status)
      return seen
    }

    const help = (await get('/')).text
    for (const path of ['/open', '/limited', '/several', '/costly?units=', '/together']) expect(help).toContain(path)
    expect(help).toContain(`curl -i ${url}/open`)

    const open = await get('/open')
    expect(JSON.parse(open.text)).toMatchObject({ server })
    expect(open.headers.get('ratelimit')).toBeNull()

    const limited: Awaited<ReturnType<typeof get>>[] = []
    await tryLimit(5, 10_000, async () => {
      const response = await get('/limited')
      limited.push(response)
      return response
    })
    expect(limited.map(({ text }) => JSON.parse(text))).toContainEqual(
      expect.objectContaining({ server, allowed: true, limits: [expect.objectContaining({ limit: 5, remaining: 4 })] }),
    )

    const several = await Promise.all(Array.from({ length: 6 }, () => get('/several')))
    several.push(await get('/several'))
    const admitted = several.filter(({ status }) => status === 200).length
    expect(admitted).toBeGreaterThanOrEqual(2)
    // Refusals by the limit per second charged nothing to the minute, of 10.
    const [, left] = /-1m";r=(\d+);/.exec(several.at(-1)?.headers.get('ratelimit') ?? '') ?? []
    expect(Number(left)).toBeGreaterThanOrEqual(10 - admitted)

    expect(await statuses('/costly?units=15', 2)).toEqual([200, 429])
    expect(await statuses('/costly?units=5', 1)).toEqual([200])
    expect((await get('/costly?units=21')).headers.get('retry-after')).toBeNull()
    // No client is admitted for a cost below 1.
    for (const units of [0, -1, 'none']) expect((await get(`/costly?units=${units}`)).status).toBe(429)
  }

  // These are slow on purpose, so all servers are tested at once.
  await Promise.all(ports.map((port) => tryResponders(`http://localhost:${port}`)))

  await tryLimit(10, 10_000, (n) => fetch(`http://localhost:${ports[n % ports.length]}/together`))
}

test('the demo prints its addresses, limits as it says, and stops cleanly on SIGTERM', async () => {
  const { demo, ports } = await startDemo()
  expect(demo.lines.slice(0, 3)).toEqual(SERVERS.map((name, i) => `${name.padEnd(8)} http://localhost:${ports[i]}`))
  expect(demo.lines[3]).toMatch(new RegExp(`^console  http://localhost:${ports[0]}/sluice/#[\\w-]{43}$`))
  await tryConsole(demo, ports[0] ?? 0)
  expect(demo.output()).toContain(`\n  curl localhost:${ports[0]}\n`)
  await tryOut(ports)
  expect(await demo.end('SIGTERM')).toBe(0)
})

/** Its link opens one session, Enter prints another link, and its traffic is refused, banned and queued. */
async function tryConsole(demo: Program, port: number): Promise<void> {
  const secrets = () => [...demo.output().matchAll(/^console .*#(.*)$/gm)].map(([, secret]) => secret)
  const [secret] = secrets()
  const api = async (path: string, headers: Record<string, string>, body?: object) => {
    const response = await fetch(`http://localhost:${port}/sluice/api/${path}`, {
      headers: { ...(body && { 'content-type': 'application/json', 'sluice-console': '1' }), ...headers },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    return { status: response.status, json: (await response.json()) as Record<string, never> }
  }
  expect((await api('demo/traffic', {}, {})).status).toBe(403)
  const { session } = (await api('session', {}, { secret })).json
  expect((await api('session', {}, { secret })).status).toBe(403)
  const own = { 'sluice-session': String(session) }
  demo.type('\n')
  await until('another link is printed', async () => secrets().length === 2)
  expect((await api('session', {}, { secret: secrets()[1] })).status).toBe(200)
  expect((await api('about', own)).json).toMatchObject({
    operator: { may: 'act' },
    features: { lists: ['partners', 'abusers'] },
  })
  expect((await api('demo/traffic', own, {})).status).toBe(200)
  expect((await api('demo/traffic', own, {})).status).toBe(409)
  const isBanned = async () => JSON.stringify((await api('blocks', own, {})).json).includes('198.51.100.66')
  await until('the attacker is banned', isBanned)
  const isWaiting = async () => /"waiting":[1-9]/.test(JSON.stringify((await api('figures', own)).json))
  await until('clients wait in the queue', isWaiting)
  const span = { from: Date.now() - 60_000, to: Date.now() + 60_000 }
  const isRecorded = async () => JSON.stringify((await api('traffic', own, span)).json).includes('198.51.100.0/24')
  await until('the page Traffic has the network of the attacker', isRecorded)
}

test('the demo listens on this machine alone, unless HOST is set', async () => {
  const others = Object.values(networkInterfaces()).flatMap((all = []) => all.filter(({ internal }) => !internal))
  const address = others.find(({ family }) => family === 'IPv4')?.address
  // A machine without a network has no other address.
  if (address === undefined) return
  const { demo, ports } = await startDemo()
  await expect(fetch(`http://${address}:${ports[0]}/open`)).rejects.toThrow()
  await demo.end('SIGTERM')
  const shared = await startDemo({ HOST: '0.0.0.0' })
  expect((await fetch(`http://${address}:${shared.ports[0]}/open`)).status).toBe(200)
  await shared.demo.end('SIGTERM')
})

test('the demo does the same on Redis, and stops cleanly on SIGINT', async () => {
  const redis = await startRedis()
  try {
    // A busy machine takes longer than usual: the demo would decide by itself then.
    const { demo, ports } = await startDemo({ REDIS_URL: redis.url, REDIS_TIMEOUT: '5000' })
    await tryOut(ports)
    expect((await redis.lifetimes()).size).toBeGreaterThan(0)
    expect(await demo.end('SIGINT')).toBe(0)
  } finally {
    await redis.stop()
  }
})

test('the demo continues during an outage of Redis, and uses Redis again afterwards', async () => {
  const redis = await startRedis()
  try {
    const { demo, ports } = await startDemo({ REDIS_URL: redis.url })
    const kinds = async () =>
      Promise.all(
        ports.map(async (port) => {
          const response = await fetch(`http://localhost:${port}/several`)
          const { kind } = (await response.json()) as { kind?: string }
          const hasQuota = response.headers.has('ratelimit')
          return response.status === 429
            ? `refused, ${hasQuota ? 'with quota' : 'without quota'}`
            : `${kind}, ${hasQuota ? 'with quota' : 'without quota'}`
        }),
      )
    const all = async (wanted: string) => (await kinds()).every((kind) => kind === wanted)
    await until('Redis decides', () => all('decided, with quota'), { everyMs: 600 })
    redis.kill('SIGKILL')
    await until('each decides by itself', () => all('unavailable, without quota'), { everyMs: 600 })
    await redis.restart()
    await until('Redis decides again', () => all('decided, with quota'), { everyMs: 600 })
    expect(await demo.end('SIGTERM')).toBe(0)
  } finally {
    await redis.stop()
  }
})

test('the demo rejects a malformed port and one that is in use', async () => {
  await expect(startExample('demo/main.js', 3, { REDIS_URL: '', PORT: 'http' })).rejects.toThrow(
    /PORT: expected a port/,
  )
  const { demo, ports } = await startDemo()
  await expect(startExample('demo/main.js', 3, { REDIS_URL: '', PORT: String(ports[0]) })).rejects.toThrow(
    /ended with 1: .*EADDRINUSE/s,
  )
  expect(await demo.end('SIGTERM')).toBe(0)
})

test.each([
  [
    'express.js',
    '/export',
    { 'x-api-key': 'key-of-ann' },
    '"all";q=100;w=60, "export-1h";q=50;w=3600, "export-1h-2";q=5000;w=3600',
  ],
  ['koa.js', '/', {}, '"all-1s";q=5;w=1, "all-1m";q=100;w=60'],
  ['fastify.js', '/search', {}, '"search";q=5;w=10'],
  ['nestjs.js', '/search', {}, '"search-1s";q=1;w=1, "search-1m";q=20;w=60'],
])('the example %s runs', async (file, path, headers, policy) => {
  const port = await freePort()
  const example = await startExample(file, 1, { PORT: String(port) })
  const response = await fetch(`http://localhost:${port}${path}`, { headers })
  expect(response.status).toBe(200)
  expect(response.headers.get('ratelimit-policy')).toBe(policy)
  expect(await example.end('SIGTERM')).toBe(0)
})
