// Deep: needs Tomcat.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { send, startDecider, withPorts } from '../../packages/gateways/support.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { byEffort } from '../../support/effort.js'
import { startNginx } from '../../support/nginx.js'
import { spelledTargets, WHOLE } from '../../support/path-spellings.js'
import { startTomcat } from '../../support/tomcat.js'

const REACHED = 'the servlet ran'
const JSP = `<%@page session="false" contentType="text/plain; charset=UTF-8"%>${REACHED}: <%= request.getServletPath() %> <%= request.getPathInfo() %>`
const SERVLETS = ['/login', '/api/search', '/files/*', '/wild/*', '/users/*']
const DOCUMENT = `version: 1
policies:
  known: { match: { paths: [/login, /api/search, /files/**, /wild/**, /users/**] }, limits: [{ limit: 1000000, window: 1h }] }
  login: { match: { paths: [/login] }, limits: [{ limit: 1, window: 1h }] }
  keys: { match: { paths: [/users/**] }, key: [path, 'header:x-run'], limits: [{ limit: 1, window: 1h }] }
`
/** Settings of the connector. */
const CONNECTORS: Readonly<Record<string, string>> = {
  'as it comes': '',
  'with encoded slashes decoded': 'encodedSolidusHandling="decode" encodedReverseSolidusHandling="decode"',
  'with encoded slashes passed through':
    'encodedSolidusHandling="passthrough" encodedReverseSolidusHandling="passthrough"',
  'with characters that URLs may not have': `relaxedPathChars='&lt;&gt;[\\]^\`{|}' relaxedQueryChars='|'`,
}

const stops = closedAfterEach()

/** Tomcat behind the nginx of the sample and its decider. Resolves to the port of nginx. */
async function start(connector: string): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-servlets-'))
  stops.push(() => rmSync(dir, { recursive: true }))
  const document = join(dir, 'policies.yaml')
  writeFileSync(document, DOCUMENT)
  const [app, decider, front] = [await freePort(), await freePort(), await freePort()]
  const tomcat = await startTomcat(app, JSP, SERVLETS, connector)
  stops.push(() => tomcat.stop())
  const running = await startDecider(decider, [
    ...['--document', document, '--dialect', 'nginx', '--trust-proxy', 'loopback'],
  ])
  stops.push(() => running.end('SIGKILL'))
  const nginx = await startNginx(withPorts('nginx/nginx.conf', { 8080: front, 3000: app, 9190: decider }), front)
  stops.push(() => nginx.stop())
  return front
}

test.each(Object.entries(CONNECTORS))(
  'no path reaches a servlet of Tomcat past its policy: %s',
  async (_, connector) => {
    const front = await start(connector)
    let count = 0
    const check = async (target: string) => {
      const { body, field } = await send(front, `GET ${target}`, [`X-Run: ${count}`])
      if (!body.includes(REACHED)) return
      count++
      expect(field('ratelimit'), `${target}: ${body}`).toContain('"known";r=')
    }
    for (const target of WHOLE) await check(target)
    expect(count).toBeGreaterThan(5)
    await fc.assert(fc.asyncProperty(spelledTargets, check), { numRuns: byEffort({ usual: 200, full: 20_000 }) })
  },
)

test('a client with one login attempt at a servlet has no second attempt by another path', async () => {
  const front = await start('')
  expect((await send(front, 'POST /login')).body).toContain(REACHED)
  const others =
    '/login /x/..;/login /;x/login /.;/login /login;x /login;x=%2f /./login /x/../login /%6cogin //login'.concat(
      ' /x;y/%2e%2e;z/login /.;a/.;b/login /x/y/..;/..;/login',
    )
  const statuses: Record<string, number> = {}
  for (const path of others.split(' ')) statuses[path] = (await send(front, `POST ${path}`)).status
  expect(
    Object.values(statuses).filter((status) => status !== 429 && status !== 400),
    JSON.stringify(statuses),
  ).toEqual([])
})

test('a path of a servlet has one budget in every spelling', async () => {
  const front = await start('')
  const keys = new Map<string, string>()
  const check = async (target: string) => {
    const { body } = await send(front, `GET ${target}`, ['X-Run: 1'])
    if (!body.includes(`${REACHED}: /users`)) return
    expect(keys.get(body), `${target}: ${body}`).toBeUndefined()
    keys.set(body, target)
  }
  for (const target of [
    '/users/1',
    '/users/1;x',
    '/users/1;x=2',
    '/x/..;/users/1',
    '/users;y/1',
    '/users/%31',
    '/users//1',
  ])
    await check(target)
  expect(keys.size).toBe(1)
  await fc.assert(fc.asyncProperty(spelledTargets, check), { numRuns: byEffort({ usual: 200, full: 20_000 }) })
})
