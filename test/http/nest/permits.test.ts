// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { Controller, Get, StreamableFile } from '@nestjs/common'
import { concurrency, Limiter, SluiceModule } from '@sluice/nestjs'
import { NEVER } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { classOf, guarded, PLATFORMS } from '../support/nest.js'
import { serve } from './apps.js'

const waiting = () => new Readable({ read() {} })

/** Handlers that wait for what never comes. */
const HANDLERS = {
  'an Observable': () => NEVER,
  'a StreamableFile of bytes': () => new StreamableFile(waiting()),
  'a StreamableFile of objects': () => new StreamableFile(new Readable({ objectMode: true, read() {} })),
}

describe.each(PLATFORMS)('permits on %s', (platform) => {
  test.each(
    Object.entries(HANDLERS).flatMap(([what, handler]) => [
      ['GET', what, handler] as const,
      ['HEAD', what, handler] as const,
    ]),
  )('%s: a client that leaves ends a handler that returned %s, and its permit', async (method, _what, handler) => {
    let began = () => {}
    const begun = new Promise<void>((resolve) => (began = resolve))
    const handle = () => {
      began()
      return handler()
    }
    const Reports = classOf('Reports', { report: [handle, Get()] }, Controller())
    const limits = SluiceModule.forRoot({ limits: [concurrency({ limit: 1, ttl: '1h' })] })
    const { app, url } = await serve(platform, guarded({ limits, controllers: [Reports] }))
    const left = async () => (await app.get(Limiter).peek({ ip: '127.0.0.1' })).remaining
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write(`${method} / HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await begun
    expect(await left()).toBe(0)
    client.destroy()
    await once(client, 'close')
    await until('the permit', async () => (await left()) === 1, { withinMs: 5_000 })
  })
})
