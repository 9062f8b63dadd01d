import { gcra, type HttpContext } from '@sluice/core'
import { expect, test } from 'vitest'
import { unhandledDuring, warningsDuring } from '../../support/process-events.js'
import { ask, frozen, type Start } from './apps.js'

export function keyTests(start: Start): void {
  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['', '""'],
  ])('a request whose key is %j causes a warning that names the remedy', async (missing, shown) => {
    const app = await start({ limit: 1, window: '10s', key: () => missing })
    const warnings = await warningsDuring(async () => expect((await ask(app)).status).toBe(400))
    const message =
      `: key: expected a non-empty string or a number, got ${shown} ` +
      '(with the option anonymous, "by-ip" or "skip", a request may have none)'
    expect(warnings.map((warning) => warning.message)).toContainEqual(expect.stringContaining(message))
  })

  test('an error of a key function tells a limiter without a name by where it was made', async () => {
    const app = await start({ limit: 1, window: '10s', key: () => (() => 'ann') as never })
    expect((await ask(app)).status).toBe(500)
    const message = expect.stringMatching(
      /^policy "default" \(made at \S+\.ts:\d+\): key: expected .*, got a function$/,
    )
    expect(app.errors).toMatchObject([{ code: 'INVALID_KEY', message }])
  })

  test('a key, limit, window, tier and priority may be promises', async () => {
    const later = async <T>(value: T) => {
      await new Promise(setImmediate)
      return value
    }
    const own = gcra({ limit: () => later(2), window: () => later('1h'), reserve: 1 })
    const app = await start({
      store: frozen(),
      key: (_request: unknown, context: HttpContext) => later(context.header('x-user')),
      tiers: { free: [own] },
      tier: () => later('free'),
      priority: (_request: unknown, context: HttpContext) => later(context.header('x-user') === 'ann' ? 1 : 0),
    })
    const status = async (user: string) => (await ask(app, 'GET', { 'X-User': user })).status
    expect([await status('ann'), await status('ann'), await status('ann')]).toEqual([200, 200, 429])
    expect([await status('bob'), await status('bob')]).toEqual([200, 429])
    expect(app.ran[0]).toMatchObject({ tier: 'free', priority: 1 })
    expect(app.errors).toEqual([])
  })

  test('a promised key that rejects reaches the error handler unchanged, and is never unhandled', async () => {
    const key = () => Promise.reject(new Error('no sessions'))
    const unhandled = await unhandledDuring(async () => {
      const app = await start({ limit: 1, window: '10s', key })
      expect((await ask(app)).status).toBe(500)
      expect(app.errors).toMatchObject([{ message: 'no sessions' }])
    })
    expect(unhandled).toEqual([])
  })
}
