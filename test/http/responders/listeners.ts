import { tarpit, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { unhandledDuring, warningsDuring } from '../../support/process-events.js'
import { ask, frozen, type Start } from './apps.js'

export function listenerTests(start: Start, name: string): void {
  test.each([
    ['an admitted', 1],
    ['a refused', 0],
  ])('an onVerdict that throws on %s request reaches the error handler once', async (_what, limit) => {
    const onVerdict = () => {
      throw new Error('user function')
    }
    const app = await start({ store: frozen(), limit, window: '10s', onVerdict })
    expect((await ask(app)).status).toBe(500)
    expect(app.errors).toHaveLength(1)
    expect(app.ran).toEqual([])
    expect((await app.limiter.peek('everyone')).remaining).toBe(0)
  })

  const noLog = new Error('no audit log')
  test.each([
    ['rejects', () => Promise.reject(noLog)],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library
    ['is a rejecting thenable', () => ({ then: (_: unknown, fail: (why: Error) => void) => fail(noLog) })],
  ])('an onVerdict that %s later causes only a warning', async (how, onVerdict) => {
    const policy = `${name}-${how}`.replace(/\W/g, '-')
    let warnings: Error[] = []
    const unhandled = await unhandledDuring(async () => {
      warnings = await warningsDuring(async () => {
        const app = await start({ store: frozen(), name: policy, limit: 1, window: '10s', onVerdict })
        expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 429])
        expect(app.errors).toEqual([])
      })
    })
    expect(unhandled).toEqual([])
    const warning = { code: 'SLUICE_LISTENER_FAILED', message: `policy "${policy}": onVerdict: no audit log` }
    expect(warnings.filter(({ message }) => message.includes(`"${policy}"`))).toMatchObject([warning, warning])
  })

  test('no request waits for onVerdict', async () => {
    const app = await start({ store: frozen(), limit: 1, window: '10s', onVerdict: () => new Promise(() => {}) })
    expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 429])
  })

  test('a skipped request is neither reported to onVerdict nor delayed', async () => {
    const verdicts: Verdict[] = []
    const app = await start({
      store: frozen(),
      limit: 0,
      window: '10s',
      skip: () => true,
      respond: tarpit(),
      onVerdict: (_request: unknown, verdict: Verdict) => void verdicts.push(verdict),
    })
    expect((await ask(app)).status).toBe(200)
    expect([verdicts, app.ran]).toEqual([[], [undefined]])
  })
}
