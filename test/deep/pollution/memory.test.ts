import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { namesInSources } from '../../support/source-names.js'
import { decisionsOf, differences, type When } from './compared.js'
import { SCENARIOS } from './scenarios.js'

const VALUES: Readonly<Record<string, unknown>> = {
  1: 1,
  true: true,
  text: 'x',
  function: () => 1,
  object: {},
  list: [1],
}
const CASES = Object.entries(VALUES).flatMap(([kind, value]) =>
  (['after', 'before'] as const).map((when): [string, When, unknown] => [kind, when, value]),
)
/** Promises of the language ask each object for `then`: see the tests of verdicts. */
const NAMES = namesInSources(['core']).filter((name) => name !== 'then')
const GROUP = 32

test.each(CASES.slice(0, byEffort({ quick: 1, usual: 1, full: CASES.length })))(
  'no name that the sources read changes a decision in memory as a property of Object.prototype: %s, polluted %s limiters are made',
  async (_, when, value) => {
    const newStore = () => memoryStore({ clock: () => 1e12 })
    const scenarios = new Map()
    for (const scenario of SCENARIOS) scenarios.set(scenario, await decisionsOf(scenario, newStore()))
    const found = []
    for (let i = 0; i < NAMES.length; i += GROUP) {
      found.push(...(await differences(scenarios, newStore, NAMES.slice(i, i + GROUP), value, when)))
    }
    expect(found).toEqual([])
  },
)
