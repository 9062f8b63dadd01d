// A request that is refused, and sent again after the wait.
import assert from 'node:assert/strict'
import { limitedFetch, perSecond } from '@sluice/fetch'
import { readQuota } from '@sluice/fetch/quota'
import { main } from './support.mjs'

main(async () => {
  const responses = [new Response(null, { status: 429, headers: { 'retry-after-ms': '20' } }), new Response('ok')]
  const api = limitedFetch(async () => responses.shift() ?? new Response(), {
    limits: [perSecond(10)],
    retry: { attempts: 1 },
  })
  assert.equal(await (await api('http://service.test/')).text(), 'ok')
  assert.equal(readQuota({ status: 200, headers: { 'x-ratelimit-remaining': '7' } }).limits[0]?.remaining, 7)
})
