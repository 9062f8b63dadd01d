import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { expect, test } from 'vitest'

const limiterOn = (members: object) => {
  const { decide, reset, close } = memoryStore()
  return () =>
    createLimiter({ name: 'api', limit: 1, window: '1m', store: { decide, reset, close, ...members } as Store })
}

test.each([
  ['block', 'block of store[BANS]'],
  ['unblock', 'unblock of store[BANS]'],
  ['strike', 'strike of store[BANS]'],
  ['enforceBansOfEveryPolicy', 'enforceBansOfEveryPolicy of store[BANS]'],
  ['blocks', 'blocks of store[BANS]'],
  ['keptCharge', 'find of store[KEPT_CHARGES]'],
  ['lists', 'given of store[LISTS]'],
  ['list', 'list of store[LISTS]'],
  ['noteRefusal', 'note of store[OFFENDERS]'],
  ['offenders', 'report of store[OFFENDERS]'],
  ['changes', 'record of store[CHANGES]'],
  ['reportWaiting', 'report of store[WAITERS]'],
  ['mayHavePermits', 'mayHavePermits of store[WAITERS]'],
])('a store with %s outside of its part is rejected, and the error names the part', (member, part) => {
  expect(limiterOn({ [member]: () => {} })).toThrow(
    `policy "api": store: ${member}: expected it as ${part}, got it as a member of the store`,
  )
})

test('a store may have a method in its part, and by its earlier name for earlier versions', () => {
  const [block, unblock, strike] = [() => {}, () => {}, () => ({ now: 0, block: undefined })]
  expect(limiterOn({ block, unblock, [BANS]: { block, unblock } })).not.toThrow()
  expect(limiterOn({ strike, [BANS]: { block, unblock } })).toThrow('strike: expected it as strike of store[BANS]')
})
