import { calendarMonth, fixedWindow, memoryStore } from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { type AnyOptions, type RunningApp, run } from './support/app.js'
import { appsByEffort } from './support/by-effort.js'
import { FRAMEWORKS } from './support/frameworks.js'

const running: RunningApp[] = []
afterEach(() => Promise.all(running.splice(0).map((app) => app.close())))

const HOUR_S = 3600
const DAY_S = 24 * HOUR_S

describe.each(Object.entries(appsByEffort(FRAMEWORKS)))('%s', (_name, factory) => {
  const start = async (clock: Clock, options: AnyOptions) => {
    const limiters = [{ name: 'plan', store: memoryStore({ clock: clock.read }), ...options } as AnyOptions]
    const app = await run(factory, { routes: { '/': { limiters } } })
    running.push(app)
    return (plan = '1') => request(app.server).get('/').set('x-day', plan)
  }

  test('headers show the length of the running period and its end, in every period', async () => {
    const clock = new Clock()
    const get = await start(clock, {
      limits: [
        calendarMonth(9, { timeZone: 'Europe/Berlin' }),
        fixedWindow({ limit: 5, window: 'day', timeZone: 'Europe/Berlin' }),
      ],
    })
    clock.now = Date.parse('2026-03-29T10:00:00Z')
    const march = await get()
    expect(march.headers['ratelimit-policy']).toBe(
      `"plan-month";q=9;w=${31 * DAY_S - HOUR_S}, "plan-day";q=5;w=${23 * HOUR_S}`,
    )
    expect(march.headers.ratelimit).toBe(
      `"plan-month";r=8;t=${2 * DAY_S + 12 * HOUR_S}, "plan-day";r=4;t=${12 * HOUR_S}`,
    )
    clock.now = Date.parse('2026-04-01T10:00:00Z')
    expect((await get()).headers['ratelimit-policy']).toBe(
      `"plan-month";q=9;w=${30 * DAY_S}, "plan-day";q=5;w=${24 * HOUR_S}`,
    )
  })

  test('a refused client gets the wait until its own billing day', async () => {
    const clock = new Clock()
    const get = await start(clock, {
      limits: [calendarMonth(1, { startsOn: (_request, context) => Number(context.header('x-day')) })],
    })
    clock.now = Date.parse('2026-06-10T00:00:00Z')
    await get('11')
    const refused = await get('11')
    expect(refused.status).toBe(429)
    expect(refused.headers['retry-after']).toBe(String(DAY_S))
    expect((await get('0')).status).toBe(500)
  })
})
