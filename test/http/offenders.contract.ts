import { byIp, degrade, memoryStore, pass, queue, reject, shadow } from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnyOptions, AppFactory, RunningApp } from './support/app.js'
import { run } from './support/app.js'

/** Refusals that count for offenders, in every adapter. */
export function offendersContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
    })

    test.each([
      ['refused', '1h', reject(), 2],
      ['shadowed', '1h', shadow({ body: {} }), 2],
      ['passed to the error handler', '1h', pass(), 2],
      ['degraded', '1h', degrade(), 0],
      ['admitted after a wait', '50ms', queue({ maxWait: '10s' }), 0],
    ])('requests that are %s, in %s, count as refusals by their outcome', async (_, window, respond, refusals) => {
      const store = memoryStore({ offenders: true })
      const options = { name: 'api', store, limit: 1, window, key: byIp(), respond } as AnyOptions
      const app = await run(factory, { trustProxy: true, routes: { '/': { limiters: [options] } } })
      running.push(app)
      for (let n = 0; n < 3; n++) await request(app.server).get('/').set('x-forwarded-for', '192.0.2.7')
      const report = await store.offenders({ policy: 'api' })
      expect(report.refusals).toBe(refusals)
      expect(report.offenders).toEqual(refusals > 0 ? [{ kind: 'ip', value: '192.0.2.7', refusals }] : [])
    })
  })
}
