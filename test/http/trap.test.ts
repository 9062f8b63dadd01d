import { trap } from '@sluice/core'
import { expect, test } from 'vitest'
import { FRAMEWORKS } from './support/frameworks.js'
import { trapContract } from './trap.contract.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) trapContract(name, factory)

test('trap rejects invalid paths and options, and names them', () => {
  expect(() => trap([])).toThrow('trap: paths: expected an array of paths')
  expect(() => trap(['/a', 'b'])).toThrow('trap: paths[1]: expected a path such as')
  expect(() => trap(['/*'])).toThrow('trap: paths[0]: expected a path such as')
  expect(() => trap(['/a'], { browsers: 1 as never })).toThrow('trap: browsers: expected true or false, got 1')
  expect(() => trap(['/a'], { weight: 0 })).toThrow('trap: weight: expected')
})
