// Deep: takes minutes.
import { redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { namesInSources } from '../../support/source-names.js'
import { TIMES } from './cases.js'
import { type Scenario, Sweep, type When } from './compared.js'
import { SCENARIOS } from './scenarios.js'

const { client } = await redisForTests()

let stores = 0
const sweep = new Sweep(() => redisStore(client, { prefix: `store${++stores}` }), namesInSources(['core']))

/** Times differ by the clock of Redis. */
const WITHOUT_TIMES: readonly Scenario[] = SCENARIOS.map((scenario) => ({
  ...scenario,
  use: (made, note) => scenario.use(made as never, (decided) => note(decided.replace(/\d{3,}/g, 'ms'))),
}))

// Each attempt to make a limiter connects a store of its own.
test.each(byEffort<readonly When[]>({ usual: ['after'], full: TIMES }))(
  'decisions on Redis read no property of Object.prototype, polluted %s limiters are made',
  async (when) => {
    expect(await sweep.reads(WITHOUT_TIMES, when)).toEqual([])
  },
)
