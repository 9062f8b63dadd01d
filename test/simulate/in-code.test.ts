import { simulate, textOf } from '@sluice/simulate'
import { expect, test } from 'vitest'

const DOCUMENT = { version: 1, policies: { login: { limits: [{ limit: 3, window: '15m' }] } } }
const LINE = '192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "POST /login HTTP/1.1" 401 27 "-" "curl/8.9"'

async function* lines(number: number, last: unknown = LINE) {
  for (let i = 1; i < number; i++) yield LINE
  yield last as string
}

test('a program plays lines by policies that are data', async () => {
  const report = await simulate({ logs: [lines(10_000)], document: DOCUMENT, identities: 'plain' })
  expect(report.log).toMatchObject({ files: ['the given lines'], lines: 10_000, isPartial: false })
  expect(report.refused).toMatchObject([{ identity: 'ip=192.0.2.7', requests: 10_000, refused: 9997 }])
  expect(textOf(report)).toContain('ip=192.0.2.7')
})

test('lines that are no texts, and a mistake in the policies, are errors', async () => {
  const plays = (logs: AsyncIterable<string>, document: object) => simulate({ logs: [logs], document })
  await expect(plays(lines(2, Buffer.from(LINE)), DOCUMENT)).rejects.toThrow(/expected lines of text/)
  await expect(plays(lines(2), { version: 1, policies: { login: { limit: 3 } } })).rejects.toThrow(
    /^document:\d+:\d+: policies\.login/,
  )
})

test('an error of the lines is the error of the replay', async () => {
  const error = new Error('the line is dead')
  const broken = async function* () {
    yield* lines(5)
    throw error
  }
  await expect(simulate({ logs: [broken()], document: DOCUMENT })).rejects.toBe(error)
})

test('a signal ends the lines, and the report is of what was read', async () => {
  const leaving = new AbortController()
  const endless = async function* () {
    yield* lines(5)
    leaving.abort()
    for (;;) yield LINE
  }
  const { log } = await simulate({ logs: [endless()], document: DOCUMENT, signal: leaving.signal })
  expect(log).toMatchObject({ lines: 5, isPartial: true })
})

test.each([600, 2000, 20_000, 86_400])('even traffic has equal steps, over %i seconds', async (seconds) => {
  const evenly = async function* () {
    for (let s = 0; s < seconds; s++) {
      const time = new Date(Date.UTC(2026, 2, 1) + s * 1000).toISOString().slice(11, 19)
      yield LINE.replace('12:00:00', time)
    }
  }
  const { timeline } = await simulate({ logs: [evenly()], document: DOCUMENT })
  const requests = timeline.admitted.map((admitted, i) => admitted + (timeline.refused[i] as number))
  // The last step may end after the log.
  expect(new Set(requests.slice(0, -1))).toEqual(new Set([timeline.stepMs / 1000]))
})
