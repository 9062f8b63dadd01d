import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { rateLimit } from '@sluice/express'
import express from 'express'
import { expect, test } from 'vitest'
import { until } from '../support/until.js'
import { lateContract } from './late.contract.js'
import { LATE_APPS } from './support/late-apps.js'

for (const [name, factory] of Object.entries(LATE_APPS)) lateContract(name, factory)

test('a body that two limiters bound gets its 413 behind an earlier response of the connection', async () => {
  const app = express()
  let finish: (() => void) | undefined
  app.get('/', (_req, res) => {
    finish = () => res.end('done')
  })
  let goOn = () => {}
  const cutOff = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const limited = { limit: 10, window: '1h', body: { max: 10 } } as const
  app.use(rateLimit({ ...limited, name: 'one' }))
  let isCutOff = () => false
  app.use((_req, res, next) => {
    isCutOff = () => res.headersSent
    void cutOff.then(() => next())
  })
  app.use(rateLimit({ ...limited, name: 'other' }), () => expect.unreachable())
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let text = ''
  const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
  socket.setEncoding('latin1').on('data', (data) => {
    text += data
  })
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\nPOST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n')
  socket.write(`20\r\n${'b'.repeat(32)}\r\n`)
  await until('the body is cut off', () => isCutOff())
  goOn()
  await setImmediate()
  finish?.()
  await closed
  server.close()
  expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 413'])
})
