// Deep: needs crowdsec.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { generateLog } from '../../../bench/lib/log-lines.js'
import { simulate } from '../../../packages/simulate/src/simulate.js'
import { ensure, find } from '../../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../../scripts/programs.js'
import { filesOf } from '../../simulate/support.js'

const CAPACITY = 10
const LEAK_MS = 12_000
const PARSERS = [
  's00-raw/crowdsecurity/syslog-logs',
  's01-parse/crowdsecurity/nginx-logs',
  's02-enrich/crowdsecurity/dateparse-enrich',
]

interface Alert {
  readonly source: { readonly ip: string }
  readonly stop_at: string
}

/** Receives the alerts of crowdsec, in place of its own server. */
async function alertsServer() {
  const alerts: Alert[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part) => parts.push(part))
    request.on('end', () => {
      response.setHeader('Content-Type', 'application/json')
      const isLogin = request.url?.endsWith('/login')
      const isAlerts = request.method === 'POST' && request.url?.startsWith('/v1/alerts')
      if (isAlerts) alerts.push(...JSON.parse(Buffer.concat(parts).toString()))
      response.statusCode = isAlerts ? 201 : 200
      const expire = new Date(Date.now() + 3_600_000).toISOString()
      response.end(isLogin ? JSON.stringify({ code: 200, expire, token: 'a.b.c' }) : '["1"]')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { alerts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

/** The time at which a leaky bucket of each client overflows first, by crowdsec with the parsers of its packaged hub. */
async function overflows(log: string): Promise<Record<string, number>> {
  await ensure([PROGRAMS.crowdsec])
  const unpacked = join(dirname(String(find(PROGRAMS.crowdsec))), '../..')
  const hub = join(unpacked, 'usr/share/crowdsec/hub')
  const folder = dirname(log)
  for (const parser of PARSERS) {
    const stage = join(folder, 'parsers', dirname(dirname(parser)))
    mkdirSync(stage, { recursive: true })
    symlinkSync(join(hub, 'parsers', `${parser}.yaml`), join(stage, `${parser.split('/').at(-1)}.yaml`))
  }
  for (const name of ['scenarios', 'postoverflows', 'data', 'notifications']) mkdirSync(join(folder, name))
  cpSync(join(unpacked, 'etc/crowdsec/patterns'), join(folder, 'patterns'), { recursive: true })
  const { alerts, url } = await alertsServer()
  const write = (name: string, data: object | string) =>
    writeFileSync(join(folder, name), typeof data === 'string' ? data : JSON.stringify(data))
  write('acquis.yaml', '')
  write('simulation.yaml', { simulation: false })
  write('credentials.yaml', { url, login: 'test', password: 'test' })
  write('scenarios/bucket.yaml', {
    type: 'leaky',
    name: 'test/bucket',
    description: 'a leaky bucket',
    filter: "evt.Meta.log_type == 'http_access-log'",
    groupby: 'evt.Meta.source_ip',
    capacity: CAPACITY,
    leakspeed: `${LEAK_MS}ms`,
  })
  write('config.yaml', {
    common: { daemonize: false, log_media: 'stdout', log_level: 'info', working_dir: '.' },
    config_paths: {
      config_dir: `${folder}/`,
      data_dir: join(folder, 'data'),
      simulation_path: join(folder, 'simulation.yaml'),
      hub_dir: `${hub}/`,
      index_path: join(hub, '.index.json'),
      notification_dir: join(folder, 'notifications'),
    },
    crowdsec_service: { acquisition_path: join(folder, 'acquis.yaml'), parser_routines: 1 },
    db_config: { type: 'sqlite', db_path: join(folder, 'data/crowdsec.db') },
    prometheus: { enabled: false },
    api: { client: { credentials_path: join(folder, 'credentials.yaml') } },
  })
  const args = ['-c', join(folder, 'config.yaml'), '-dsn', `file://${log}`, '-type', 'nginx', '-no-api']
  const crowdsec = spawn(join(unpacked, 'usr/bin/crowdsec'), args, { stdio: 'ignore' })
  expect(await once(crowdsec, 'exit')).toEqual([0, null])
  const first: Record<string, number> = {}
  for (const { source, stop_at } of alerts) {
    first[source.ip] = Math.min(first[source.ip] ?? Number.POSITIVE_INFINITY, Date.parse(stop_at))
  }
  return first
}

test('the clients that are refused, and when first, are those whose buckets overflow by crowdsec', {
  timeout: 300_000,
}, async () => {
  const text = Buffer.concat([...generateLog({ seed: 6, lines: 20_000, clients: 3000, perSecond: 40 })]).toString(
    'latin1',
  )
  // Addresses of IPv6 are counted by /64 here, and one by one there.
  const lines = text.split('\n').filter((line) => line !== '' && !line.split(' ', 1)[0]?.includes(':'))
  // Both take a request at its second.
  const bucket = { algorithm: 'tokenBucket', capacity: CAPACITY, refill: 1, every: `${LEAK_MS}ms` }
  const files = filesOf({
    'access.log': `${lines.join('\n')}\n`,
    'policies.json': JSON.stringify({ version: 1, policies: { api: { limits: [bucket] } } }),
  })
  const report = await simulate({ logs: [files['access.log']], document: files['policies.json'], identities: 'plain' })
  const ours = Object.fromEntries(
    report.refused.map(({ identity, firstMs }) => [identity.slice('ip='.length), firstMs]),
  )
  expect(report.clients.refused).toBe(report.refused.length)
  expect(report.refused.length).toBeGreaterThan(20)
  expect(ours).toEqual(await overflows(files['access.log']))
})
