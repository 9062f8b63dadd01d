import { expect, test } from 'vitest'
import { DOCUMENT, visitsFor } from './live/document.js'
import { SERVERS, serveLive } from './live/live-servers.js'
import { playLog } from './live/played.js'

test.each(SERVERS)('decisions, waits and slowed responses are those of a live server of %s', async (framework) => {
  const visits = visitsFor(7, 14)
  const [live, played] = [await serveLive(framework, DOCUMENT, visits), await playLog(DOCUMENT, visits)]
  const shown = (fates: typeof live) =>
    fates.map((fate, i) => ({
      ...fate,
      target: visits[i]?.target,
      ip: visits[i]?.ip,
      atMs: (visits[i]?.at ?? 0) % 1e6,
    }))
  expect(shown(played)).toEqual(shown(live))
  // Every kind of fate is among them.
  expect(live.some(({ isAdmitted }) => !isAdmitted)).toBe(true)
  expect(live.some(({ isAdmitted, decidedMs }) => isAdmitted && decidedMs > 0)).toBe(true)
  expect(live.some(({ isAdmitted, decidedMs }) => !isAdmitted && decidedMs > 0)).toBe(true)
  expect(live.some(({ sendingMs }) => sendingMs > 0)).toBe(true)
})
