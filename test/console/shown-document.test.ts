import { memoryStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import { afterEach, expect, test } from 'vitest'
import { ask, startConsole, withBody } from './support.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('a reader gets the policies of a document as YAML, with the lines of their limits', async () => {
  const document = await policies.from({
    object: { version: 1, policies: { api: { limits: [{ limit: 5, window: '1h' }], deny: { ip: ['192.0.2.7'] } } } },
  })
  closing.push(() => document.close())
  const { shown: _, ...older } = {
    version: '1',
    error: undefined,
    byName: new Map(),
    forIdentity: async () => [],
    shown: 0,
  }
  const documents = [
    { policies: document, name: 'api' },
    { policies: older, name: 'older' },
  ]
  const port = await startConsole({ store: memoryStore(), policies: documents } as never, closing)
  const shown = (limiter: string) =>
    ask(port, '/sluice/api/document', { headers: withBody(port, 'bob'), body: { limiter } })
  expect(await shown('api')).toMatchObject({
    status: 200,
    json: {
      text: 'version: 1\npolicies:\n  api:\n    limits:\n      - limit: 5\n        window: 1h\n    deny: "not shown"\n',
      lines: { api: [5] },
      left: 0,
    },
  })
  expect((await shown('nothing')).status).toBe(404)
  expect((await shown('older')).status).toBe(501)
})
