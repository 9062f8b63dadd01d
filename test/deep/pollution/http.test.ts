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

const sweep = new Sweep(() => memoryStore({ clock: () => 1e12 }), NAMES)
const scenarios = httpScenarios(connection)

test.each(byEffort<readonly When[]>({ usual: ['after'], full: TIMES }))(
  'requests read no property of Object.prototype by our code, polluted %s limiters are made',
  async (when) => {
    expect(await sweep.reads(scenarios, when)).toEqual([])
  },
)

test.each(byEffort({ usual: [], full: CASES }))(
  'no property of Object.prototype changes a response: %s, polluted %s limiters are made',
  async (_, when, value) => {
    expect(await sweep.differences(scenarios, value, when)).toEqual([])
  },
)
