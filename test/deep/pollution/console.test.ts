// Deep: takes minutes.
import { createLimiter, memoryStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import { test } from 'vitest'
import { APPS, ask, asOperator, authorize, portOf, withBody } from '../../console/support.js'
import { namesInSources } from '../../support/source-names.js'
import { expectNoReads } from './reads.js'

const names = namesInSources()

test.each(Object.entries(APPS))('the console reads no property of Object.prototype with %s', async (_, start) => {
  const store = memoryStore({ offenders: true })
  const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h', key: (ip: string) => ip })
  const document = await policies.from({
    object: { version: 1, policies: { search: { limits: [{ limit: 3, window: '1h' }] } } },
  })
  const server = await start({ store, limiters: [mail], policies: document, lists: ['vip'], authorize })
  const port = portOf(server)
  const identity = { kind: 'ip', value: '192.0.2.7' }
  try {
    await expectNoReads(names, async (note) => {
      const get = (path: string) => ask(port, `/sluice${path}`, { headers: asOperator(port) })
      const post = (path: string, body: object) => ask(port, `/sluice/api${path}`, { headers: withBody(port), body })
      await mail.consume('a')
      for (const path of ['/', '/api/about', '/api/limiters', '/api/figures', '/api/versions', '/nothing'])
        note(await get(path))
      for (const [path, more] of Object.entries({
        identity: { identity },
        why: { identity },
        block: { identity, for: '1h', reason: 'spam' },
        blocks: { kind: 'ip' },
        unblock: { identity },
        reset: { identity },
        list: { list: 'vip' },
        changes: {},
        overrides: {},
        forget: { identity, confirmed: true },
      })) {
        note(await post(`/${path}`, more))
      }
    })
  } finally {
    server.close()
  }
})
