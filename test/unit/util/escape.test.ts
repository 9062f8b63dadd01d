import { createLimiter, events, type Logger, startLogging } from '@sluice/core'
import { escapeControls } from '@sluice/core/internal'
import { expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'

/** A byte that begins an escape sequence, a character that reverses the text, and ones that hide. */
const EVIL = 'x\u009b2J\u202e\u200b\u{e0041}'
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

test('escaping JSON changes its spelling only, and keeps line breaks', () => {
  for (const value of [EVIL, { [EVIL]: [EVIL, '\n\r\t\0\x7f\u0600\ufeffé漢😀', null, 1.5] }]) {
    const text = escapeControls(JSON.stringify(value, null, 2))
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect(JSON.parse(text)).toEqual(value)
  }
  expect(escapeControls('é漢😀\n\u009b')).toBe('é漢😀\n\\u009b')
})

test('errors, warnings and log lines that quote a client cannot control a terminal', async () => {
  const limiter = createLimiter({ name: 'api', limit: 1, window: '1m' })
  const error = await limiter.consume('ann', { cost: EVIL as never }).catch((failure: Error) => failure)
  expect(String(error)).toMatch(/got "x\\u009b2J\\u202e\\u200b/)
  expect(String(error)).not.toMatch(STEERING)

  const written: string[] = []
  const write: Logger['info'] = (fields, message) => written.push(JSON.stringify(fields) + message)
  const stop = startLogging({ logger: { info: write, warn: write }, keys: 'plain' })
  const off = events.on('refused', () => {
    throw new Error(EVIL)
  })
  const warnings = await warningsDuring(async () => {
    for (let n = 0; n < 2; n++) await limiter.consume(EVIL)
    await limiter.block(EVIL, { for: '1h', reason: EVIL })
  })
  off()
  stop()
  expect(warnings.join()).toContain('listener of "refused"')
  expect(warnings.join()).not.toMatch(STEERING)
  expect(written).toEqual([expect.stringContaining('u009b'), expect.stringContaining('u009b')])
  expect(written.join()).not.toMatch(STEERING)
})
