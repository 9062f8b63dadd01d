// Release: runs examples. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { type Running, startOnPorts } from './programs.js'

const running: Running[] = []
const start = async (file: string, env: Record<string, string> = {}) => {
  const example = await startOnPorts(file, env)
  running.push(example)
  return example
}
// Every example ends cleanly on SIGTERM.
afterEach(async () => {
  for (const { program } of running.splice(0)) expect(await program.end('SIGTERM')).toBe(0)
})

const statusOf = async (url: string, init?: RequestInit) => {
  const response = await fetch(url, init)
  await response.arrayBuffer()
  return response.status
}

describe('examples of frameworks', () => {
  const times = async (n: number, url: string, init?: RequestInit) => {
    const statuses: number[] = []
    for (let i = 0; i < n; i++) statuses.push(await statusOf(url, init))
    return statuses
  }

  // A busy machine may take longer than a second for them: then another round is sent.
  const refusedWithinSecond = async (requests: () => Promise<number[]>) => {
    const rounds: number[][] = []
    while (rounds.length < 5 && !rounds.at(-1)?.includes(429)) rounds.push(await requests())
    expect(rounds.flat()).toEqual(expect.arrayContaining([200, 429]))
  }

  test('the example express.js does what its comment says', async () => {
    const { url } = await start('express.js')
    const root = await fetch(url)
    expect([await root.json(), root.headers.get('ratelimit')]).toEqual([{ hello: 'world' }, '"all";r=99;t=60'])
    const headers = { 'x-api-key': 'key-of-ann' }
    expect(await times(2, `${url}/export?pages=6`, { headers })).toEqual([200, 429])
    expect(await times(1, `${url}/export?pages=4`, { headers })).toEqual([200])
  })

  test('the example koa.js does what its comment says', async () => {
    const { url } = await start('koa.js')
    await refusedWithinSecond(() => times(6, url))
  })

  test('the example fastify.js does what its comment says', async () => {
    const { url } = await start('fastify.js')
    expect(await times(6, `${url}/search`)).toEqual([200, 200, 200, 200, 200, 429])
    expect(await times(6, `${url}/health`)).toEqual([200, 200, 200, 200, 200, 200])
    await refusedWithinSecond(() => times(2, `${url}/orders`, { method: 'POST' }))
  })
})

describe.each(['express', 'koa', 'fastify'])('login/%s.js', (framework) => {
  const open = (env: Record<string, string> = {}) => start(`login/${framework}.js`, env)
  const post = (url: string, body: string, headers: Record<string, string> = {}) =>
    statusOf(`${url}/login`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
  const login = (url: string, account: unknown, password: unknown) => post(url, JSON.stringify({ account, password }))
  const guess = async (url: string, guesses: number) => {
    const accounts = Array.from({ length: guesses }, (_, i) => `account ${i}`)
    return (await Promise.all(accounts.map((account) => login(url, account, 'guess')))).sort()
  }
  const times = (count: number, status: number) => Array(count).fill(status)

  test('the login example refuses an account after 5 wrong passwords, in any spelling, and counts no right one', async () => {
    const { url } = await open()
    for (let n = 0; n < 7; n++) expect(await login(url, 'bob', 'battery staple')).toBe(200)
    const guesses: number[] = []
    for (const account of ['ann', 'Ann', 'ANN ', 'ann', ' ann', 'ann']) guesses.push(await login(url, account, 'guess'))
    expect(guesses).toEqual([...times(5, 401), 429])
    expect(await login(url, 'ann', 'correct horse')).toBe(429)
    expect(await login(url, 'bob', 'battery staple')).toBe(200)
  })

  test('the login example refuses an address after 20 wrong passwords, for any accounts, tried at once', async () => {
    const { url } = await open()
    expect(await guess(url, 25)).toEqual([...times(20, 401), ...times(5, 429)])
    expect(await login(url, 'bob', 'battery staple')).toBe(429)
    expect(await statusOf(url)).toBe(200)
  })

  test('the login example responds to malformed logins with 4xx, without internals', async () => {
    const { url } = await open()
    for (const account of [['ann'], {}, 7, null, ' ']) expect(await login(url, account, 'guess')).toBe(400)
    expect(await login(url, 'ann', 7)).toBe(400)
    expect(await post(url, '{')).toBe(400)
    expect(await post(url, `"${'x'.repeat(2000)}"`)).toBe(413)
    const response = await fetch(`${url}/login`, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' },
    })
    expect(await response.text()).not.toMatch(/node_modules|examples|at /)
  })

  test('the login example bans an address that sends probes, from the site and from logins', async () => {
    const { url } = await open({ BAN_PRIVATE: '1' })
    const image = { headers: { 'sec-fetch-site': 'cross-site' } }
    for (let n = 0; n < 3; n++) expect(await statusOf(`${url}/.env`, image)).toBe(404)
    expect(await statusOf(`${url}/.env`)).toBe(404)
    expect(await login(url, 'bob', 'battery staple')).toBe(200)
    const caught = await fetch(`${url}/.git/config`)
    expect([caught.status, ((await caught.json()) as { type: string }).type]).toEqual([
      429,
      expect.stringContaining('abnormal-usage-detected'),
    ])
    expect(Number(caught.headers.get('retry-after'))).toBeGreaterThan(500)
    expect([await statusOf(url), await login(url, 'bob', 'battery staple')]).toEqual([429, 429])
  })

  test('the login example counts wrong passwords and probes on one ladder', async () => {
    const { url } = await open({ BAN_PRIVATE: '1' })
    expect(await statusOf(`${url}/.env`)).toBe(404)
    // A probe is 15 strikes, and so are 15 wrong passwords.
    expect(await guess(url, 14)).toEqual(times(14, 401))
    expect(await statusOf(url)).toBe(200)
    expect(await guess(url, 1)).toEqual([401])
    await until('the address is banned', async () => (await statusOf(url)) === 429)
    expect(await login(url, 'bob', 'battery staple')).toBe(429)
  })

  test('the login example does not ban the owner of an account that others attack', async () => {
    const { url } = await open({ BAN_PRIVATE: '1' })
    for (let n = 0; n < 5; n++) expect(await login(url, 'bob', `guess ${n}`)).toBe(401)
    for (let n = 0; n < 40; n++) expect(await login(url, 'bob', 'battery staple')).toBe(429)
    expect(await statusOf(url)).toBe(200)
  })

  test('the login example bans no private address by default', async () => {
    const { url } = await open()
    for (let n = 0; n < 5; n++) expect(await statusOf(`${url}/.env`)).toBe(404)
    expect(await statusOf(url)).toBe(200)
  })
})

describe('tiers.js', () => {
  test('the example tiers.js gives each plan its quota, and refunds unused pages of a report', async () => {
    const { url } = await start('tiers.js')
    const get = async (path: string, key: string) => {
      const response = await fetch(url + path, { headers: { 'x-api-key': key } })
      return { status: response.status, headers: response.headers, body: await response.json() }
    }
    expect((await get('/search', 'nobody')).status).toBe(401)
    expect((await get('/search', 'free-1')).body).toEqual({ found: [], remaining: 9 })
    const report = await get('/report?pages=3', 'free-1')
    expect([report.body, report.headers.get('ratelimit')]).toEqual([{ pages: 3 }, expect.stringContaining(';r=1;')])
    expect((await get('/search', 'free-1')).body).toMatchObject({ remaining: 5 })
    const tooMuch = await get('/report?pages=1', 'free-1')
    expect([tooMuch.status, tooMuch.headers.get('ratelimit')]).toEqual([429, expect.stringContaining(';r=5;')])
    expect((await get('/report?pages=8', 'pro-1')).headers.get('ratelimit')).toContain(';r=92;')
  })

  test('the example tiers.js lets pages of other origins read the quota, also of refusals', async () => {
    const { url } = await start('tiers.js')
    const headers = { origin: 'https://shop.example', 'x-api-key': 'free-1' }
    // The preflight of a browser for a header of the page.
    const preflightHeaders = { origin: headers.origin, 'access-control-request-method': 'GET' }
    for (let n = 0; n < 20; n++) {
      const preflight = await fetch(`${url}/report`, { method: 'OPTIONS', headers: preflightHeaders })
      expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([204, 'x-api-key'])
    }
    for (const status of [200, 429]) {
      const response = await fetch(`${url}/report`, { headers })
      await response.text()
      const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ') ?? []
      const quotaFields = [...response.headers.keys()].filter((name) => /^(ratelimit|retry)/.test(name))
      expect([status, quotaFields.length]).toEqual([response.status, status === 200 ? 2 : 3])
      expect(exposed).toEqual(expect.arrayContaining(quotaFields))
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      await statusOf(`${url}/search`, { headers })
      await statusOf(`${url}/search`, { headers })
      await statusOf(`${url}/search`, { headers })
    }
  })
})

describe('downloads.js', () => {
  test('the example downloads.js slows the third download, and refuses none', async () => {
    const { url } = await start('downloads.js')
    const tookMs = async () => {
      const startedAt = performance.now()
      const response = await fetch(`${url}/file`)
      expect([response.status, (await response.arrayBuffer()).byteLength]).toEqual([200, 1024 * 1024])
      return performance.now() - startedAt
    }
    await tookMs()
    await tookMs()
    const slowed = await tookMs()
    // 768 KiB at 512 KiB a second; the last slice need not be waited for.
    expect(slowed).toBeGreaterThan(1300)
  })
})

describe('queue.js', () => {
  test('the example queue.js serves all at its pace, and a paying customer before earlier ones', async () => {
    const { url } = await start('queue.js')
    const picture = async (headers: Record<string, string> = {}) => {
      const response = await fetch(`${url}/picture`, { headers })
      return Number(/^picture (\d+)$/m.exec(await response.text())?.[1])
    }
    const startedAt = performance.now()
    const others = Array.from({ length: 6 }, () => picture())
    await sleep(100)
    const paying = await picture({ 'x-api-key': 'gold' })
    const all = [...(await Promise.all(others)), paying]
    expect(all.sort()).toEqual([1, 2, 3, 4, 5, 6, 7])
    // In order of arrival it would be the last.
    expect(paying).toBeLessThan(7)
    // The first at once, then one every 250 ms.
    expect(performance.now() - startedAt).toBeGreaterThan(1400)
  })
})

describe('roll-out.js', () => {
  test('the example roll-out.js reports what it would have refused, and refuses none', async () => {
    const { url } = await start('roll-out.js')
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) statuses.push(await statusOf(`${url}/reported`))
    expect(statuses).toEqual([200, 200, 200, 200, 200])
    expect(await (await fetch(`${url}/would-have-refused`)).json()).toEqual({ '/reported': 2 })
  })

  test('the example roll-out.js enforces limits for about a tenth of the clients', async () => {
    const { url } = await start('roll-out.js', { ROLL_OUT_SALT: 'one salt' })
    let refused = 0
    for (let client = 0; client < 100; client++) {
      const headers = { 'x-api-key': `key-${client}` }
      const statuses: number[] = []
      for (let n = 0; n < 4; n++) statuses.push(await statusOf(`${url}/tenth`, { headers }))
      expect(statuses.slice(0, 3)).toEqual([200, 200, 200])
      if (statuses[3] === 429) refused++
    }
    // One salt selects the same clients every time, so the number is constant.
    expect(refused).toBeGreaterThan(2)
    expect(refused).toBeLessThan(25)
  })
})
