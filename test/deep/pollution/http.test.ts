// Deep: takes minutes.
import { memoryStore } from '@sluice/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { namesInSources } from '../../support/source-names.js'
import { CASES, TIMES } from './cases.js'
import { Sweep, type When } from './compared.js'
import { Connection } from './http-apps.js'
import { httpScenarios } from './http-scenarios.js'

const connection = new Connection()
beforeAll(() => connection.open())
afterAll(() => connection.close())

/** Names of fields of responses: Fastify reads these through prototypes. */
const FIELD = /-/
const NAMES = namesInSources(['core', 'express', 'koa', 'fastify', 'policies']).filter((name) => !FIELD.test(name))

/** Names of traits, replies and contexts. With others as values, the test runner, which shares the prototype, could not go on. */
const READ = [
  'base',
  'clientOf',
  'ending',
  'keepsCharges',
  'likeHandler',
  'proceed',
  'queues',
  'sharesResponse',
  'slowness',
  'to',
]

const newStore = () => memoryStore({ clock: () => 1e12 })
const scenarios = httpScenarios(connection)

test.each(byEffort<readonly When[]>({ usual: ['after'], full: TIMES }))(
  'requests read no property of Object.prototype by our code, polluted %s limiters are made',
  async (when) => {
    expect(await new Sweep(newStore, NAMES).reads(scenarios, when)).toEqual([])
  },
)

test.each(CASES)(
  'no property of Object.prototype changes a response: %s, polluted %s limiters are made',
  async (_, when, value) => {
    expect(await new Sweep(newStore, READ).differences(scenarios, value, when)).toEqual([])
  },
)
