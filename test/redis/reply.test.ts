import { expect, test } from 'vitest'
// The store alone calls it, and what the store makes of lies is tested in fuzz/replies.
import { checkedReply } from '../../packages/core/src/redis/reply.js'

test.each([
  ['numbers', [1, 2, 3, 4, 5]],
  ['never, and a block with its reason', [1, -1, 3600, 5, 0, 'scraping']],
  ['zero, and the largest', [0, 0, 0, 0, Number.MAX_SAFE_INTEGER]],
])('%s are a reply', (_what, reply) => {
  expect(checkedReply(reply, 5)).toBe(reply)
})

test.each([
  ['nothing', null],
  ['nothing at all', undefined],
  ['a text', 'OK'],
  ['a number', 5],
  ['an empty array', []],
  ['too few', [1, 2, 3, 4]],
  ['more numbers than were asked for', [1, 2, 3, 4, 5, 6]],
  ['a gap', [1, 2, null, 4, 5]],
  ['a number as text', [1, 2, '3', 4, 5]],
  ['what is no number', [1, 2, Number.NaN, 4, 5]],
  ['a fraction', [1, 2, 0.5, 4, 5]],
  ['beyond 2^53', [1, 2, 2 ** 53, 4, 5]],
  ['a bigint', [1, 2, 3n, 4, 5]],
  ['an array inside', [1, 2, [3], 4, 5]],
  ['an error inside', [1, 2, new Error('no'), 4, 5]],
  ['a reason that is no text', [1, -1, 3600, 5, 0, null]],
  ['what looks like an array', { length: 5, 0: 1, 1: 2, 2: 3, 3: 4, 4: 5 }],
])('%s is none', (_what, reply) => {
  expect(() => checkedReply(reply, 5)).toThrow(
    expect.objectContaining({ name: 'SluiceError', code: 'STORE_UNAVAILABLE' }),
  )
})
