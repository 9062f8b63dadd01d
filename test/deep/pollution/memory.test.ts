import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { namesInSources } from '../../support/source-names.js'
import { CASES } from './cases.js'
import { differencesOf } from './compared.js'
import { SCENARIOS } from './scenarios.js'

test.each(CASES)(
  'no name that the sources read changes a decision in memory as a property of Object.prototype: %s, polluted %s limiters are made',
  async (_, when, value) => {
    const newStore = () => memoryStore({ clock: () => 1e12 })
    expect(await differencesOf(SCENARIOS, newStore, namesInSources(['core']), value, when)).toEqual([])
  },
)
