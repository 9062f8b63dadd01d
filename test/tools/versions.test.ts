import { expect, test } from 'vitest'
import { versionsOf } from '../../scripts/versions.js'

test.each([
  ['>=5.4 <7', { lowest: '5.4.0', 'lowest major': '^5.4.0', newest: '6' }],
  ['>=2 <4', { lowest: '2.0.0', 'lowest major': '^2.0.0', newest: '3' }],
  ['>=5 <6', { lowest: '5.0.0', 'lowest major': '^5.0.0', newest: '5' }],
])('the lowest, the newest of the lowest major and the newest of %s are tried', (range, versions) => {
  expect(versionsOf('peer', range)).toEqual(versions)
})

test.each(['*', '^5.0.0', '>=5', '>=5.4.2 <7'])('an unreadable range is an error: %s', (range) => {
  expect(() => versionsOf('koa', range)).toThrow(`koa: expected a range such as ">=5.4 <7", got "${range}"`)
})
