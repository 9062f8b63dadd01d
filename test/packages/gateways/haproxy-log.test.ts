// Release: runs HAProxy.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openLogs } from '../../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../../packages/simulate/src/record.js'
import { freePort } from '../../../scripts/lib/ports.js'
import { until } from '../../support/until.js'
import { startApp } from './support.js'

test('lines that HAProxy writes are requests, and a bad one is none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-haproxy-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const app = await startApp()
  onTestFinished(() => app.stop())
  const port = await freePort()
  const settings = join(folder, 'haproxy.cfg')
  writeFileSync(
    settings,
    `global
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend in
  bind 127.0.0.1:${port}
  capture request header User-Agent len 64
  default_backend app
backend app
  server app 127.0.0.1:${app.port}
`,
  )
  const haproxy = spawn('haproxy', ['-db', '-f', settings])
  onTestFinished(() => void haproxy.kill('SIGKILL'))
  let text = ''
  haproxy.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await until('HAProxy listens', () => isOpen(port))
  await fetch(`http://127.0.0.1:${port}/a?b="1"`, { headers: { 'user-agent': 'my "agent" {1}' } })
  await fetch(`http://127.0.0.1:${port}/forbidden`)
  await send(port, 'no request\r\n\r\n')
  await until('all are logged', () => text.includes('BADREQ') && text.split('"GET ').length > 2)
  const log = join(folder, 'haproxy.log')
  writeFileSync(log, text.slice(text.indexOf('127.0.0.1:')))
  const logs = await openLogs([log])
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  expect(logs.formats).toEqual(['haproxy'])
  expect(records.map(({ ip, method, target, status }) => ({ ip, method, target, status }))).toEqual([
    { ip: '127.0.0.1', method: 'GET', target: expect.stringMatching(/^\/a\?b=/), status: 200 },
    { ip: '127.0.0.1', method: 'GET', target: '/forbidden', status: 403 },
  ])
  expect(logs.counts.others).toBeGreaterThan(0)
  expect(logs.counts.unread).toBe(0)
})

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

function send(port: number, text: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(text))
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
    socket.resume()
  })
}
