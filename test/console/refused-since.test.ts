import { expect, test } from 'vitest'
import { type RefusedSince, sinceOf } from '../../packages/console/page/pages/refused-since.js'

/** Whether refusals need attention, second by second. */
function shown(shares: readonly number[], decisions = 100): readonly boolean[] {
  let since: RefusedSince | undefined
  return shares.map((share, second) => {
    since = sinceOf(since, { decisions, refused: share * decisions }, second * 1000)
    return since !== undefined
  })
}

test('refusals need attention from a quarter of the decisions', () => {
  expect(shown([0, 0.24, 0.25, 0.4])).toEqual([false, false, true, true])
})

test('a share around a quarter does not come and go', () => {
  const shares = Array.from({ length: 120 }, (_, second) => (second % 2 === 0 ? 0.26 : 0.21))
  expect(shown(shares)).not.toContain(false)
})

test('the sentence stays for 30 s, and leaves below a fifth', () => {
  const fallen = shown([0.3, ...Array.from({ length: 40 }, () => 0)])
  expect(fallen.indexOf(false)).toBe(30)
  const late = shown([...Array.from({ length: 60 }, () => 0.3), 0.2, 0.19, 0.24])
  expect(late.slice(60)).toEqual([true, false, false])
})

test('a share of fewer than two decisions a second says nothing', () => {
  expect(shown([1, 1], 1)).toEqual([false, false])
})

test('the worst second since then is kept, and the time of the first one', () => {
  const perSecond = (refused: number) => ({ decisions: 10, refused })
  let since = sinceOf(undefined, perSecond(3), 1000)
  for (const [i, refused] of [5, 9, 4, 0].entries()) since = sinceOf(since, perSecond(refused), 2000 + 1000 * i)
  expect(since).toEqual({ at: 1000, most: 0.9 })
})
