import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'
import { filesOf } from './support.js'

test('lines that Fastify writes are requests, each once', async () => {
  let text = ''
  const stream = {
    write(line: string) {
      text += line
    },
  }
  const app = Fastify({ logger: { stream } })
  app.get('/a', async (request) => {
    request.log.info('a line of the application')
    return 'ok'
  })
  app.get('/failing', async () => {
    throw new Error('no')
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await fetch(`${origin}/a?b=1`)
  await fetch(`${origin}/failing`)
  await fetch(`${origin}/missing`, { method: 'POST' })
  await app.close()
  const { log } = filesOf({ log: text })
  const logs = await openLogs([log])
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  expect(logs.formats).toEqual(['fastify'])
  expect(records.map(({ ip, method, target, status }) => ({ ip, method, target, status }))).toEqual([
    { ip: '127.0.0.1', method: 'GET', target: '/a?b=1', status: 200 },
    { ip: '127.0.0.1', method: 'GET', target: '/failing', status: 500 },
    { ip: '127.0.0.1', method: 'POST', target: '/missing', status: 404 },
  ])
  expect(records.every(({ durationMs = -1, host }) => durationMs >= 0 && host === origin.slice('http://'.length))).toBe(
    true,
  )
  expect(logs.counts.unread).toBe(0)
})
