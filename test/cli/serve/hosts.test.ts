import { expect, test } from 'vitest'
import { ask, type Decider, endWithTests, gateway, json, refused, serving, THREE } from './support.js'

endWithTests()

const TOKEN = 'a-token-of-sixteen'

/** What a page can send once its own name leads to this machine: any header but `Host` and `Origin`. */
const FIELDS = ['Original', 'Forwarded'].flatMap((kind): [string, string][] => [
  [`X-${kind}-Method`, 'GET'],
  [`X-${kind}-Uri`, '/'],
  [`X-${kind}-Host`, 'shop.example'],
  [`X-${kind}-For`, '192.0.2.7'],
])
FIELDS.push(['X-Sluice-Token', TOKEN])

/** The status of a request for a decision under this host, in the form of each dialect. */
async function statusOf(decider: Decider, isJson: boolean, host: string): Promise<number> {
  const body = '{"path":"/","ip":"192.0.2.7"}'
  const asJson: [string, string][] = [
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['Authorization', `Bearer ${TOKEN}`],
  ]
  return (await ask(decider, isJson ? { method: 'POST', host, headers: asJson, body } : { host, headers: FIELDS }))
    .status
}

const argsOf = (dialect: string, ...more: string[]) =>
  dialect === 'json' ? json(THREE, ...more) : gateway(dialect, THREE, ...more)

test.each(['nginx', 'forward-auth', 'haproxy', 'json'])(
  'a decider without a token decides nothing for a page by DNS rebinding: %s',
  async (dialect) => {
    const isJson = dialect === 'json'
    const decides = isJson ? 200 : 204
    const decider = await serving(argsOf(dialect))
    const { port } = decider
    for (const name of ['evil.example', 'EVIL.example', 'localhost.evil.example', '127.0.0.1.evil.example', '[evil]']) {
      expect([name, await statusOf(decider, isJson, `${name}:${port}`)]).toEqual([name, 421])
    }
    expect(decider.stderr).toContain('--allowed-host')
    // Nothing was charged.
    for (const host of [`127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
      expect([host, await statusOf(decider, isJson, host)]).toEqual([host, decides])
    }
  },
)

test.each(['nginx', 'forward-auth', 'haproxy'])(
  'a gateway may pass on the host of its client, or send a name of its own: %s',
  async (dialect) => {
    const decider = await serving(argsOf(dialect))
    for (const host of ['decider', 'shop.example', 'shop.example:8080']) {
      expect([host, await statusOf(decider, false, host)]).toEqual([host, 204])
    }
  },
)

test('a decider is called by the names that --allowed-host has, and its metrics are, too', async () => {
  const names = ['--allowed-host', 'Decider.internal', '--allowed-host', 'sluice']
  const decider = await serving(argsOf('nginx', ...names, '--metrics', '127.0.0.1:0'))
  expect(await statusOf(decider, false, `decider.internal:${decider.port}`)).toBe(204)
  expect(await statusOf(decider, false, `SLUICE:${decider.port}`)).toBe(204)
  expect(await statusOf(decider, false, `other.internal:${decider.port}`)).toBe(421)
  const [, port] = /metrics on http:\/\/127\.0\.0\.1:(\d+)/.exec(decider.stdout) ?? []
  const metrics = async (host: string) => (await ask({ port: Number(port) }, { path: '/metrics', host })).status
  expect(await metrics(`sluice:${port}`)).toBe(200)
  expect(await metrics(`other.internal:${port}`)).toBe(421)
})

test('with a token a decider has any host', async () => {
  for (const dialect of ['nginx', 'json']) {
    const decider = await serving(argsOf(dialect), { SLUICE_TOKEN: TOKEN })
    expect(await statusOf(decider, dialect === 'json', `decider.internal:${decider.port}`)).toBeLessThan(300)
  }
})

test.each(['decider.internal:9190', 'http://decider.internal', '*', ''])(
  '--allowed-host takes names alone: %j is rejected',
  async (name) => {
    const { code, stderr } = await refused(argsOf('nginx', '--allowed-host', name))
    expect([code, stderr]).toEqual([2, expect.stringContaining('--allowed-host')])
  },
)
