// Deep: takes minutes.
import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { namesInSources } from '../../support/source-names.js'
import { CASES, TIMES } from './cases.js'
import { Sweep } from './compared.js'
import { SCENARIOS } from './scenarios.js'

const sweep = new Sweep(() => memoryStore({ clock: () => 1e12 }), namesInSources(['core']))

test.each(TIMES)(
  'decisions in memory read no property of Object.prototype, polluted %s limiters are made',
  async (when) => {
    expect(await sweep.reads(SCENARIOS, when)).toEqual([])
  },
)

test.each(CASES)(
  'no property of Object.prototype changes a decision in memory: %s, polluted %s limiters are made',
  async (_, when, value) => {
    expect(await sweep.differences(SCENARIOS, value, when)).toEqual([])
  },
)
