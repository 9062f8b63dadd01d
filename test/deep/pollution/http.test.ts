import { memoryStore } from '@sluice/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { namesInSources } from '../../support/source-names.js'
import { CASES } from './cases.js'
import { differencesOf } from './compared.js'
import { Connection } from './http-apps.js'
import { httpScenarios } from './http-scenarios.js'

const connection = new Connection()
beforeAll(() => connection.open())
afterAll(() => connection.close())

/** Names of fields of responses: Fastify reads these through prototypes. */
const FIELD = /-/
const NAMES = namesInSources(['core', 'express', 'koa', 'fastify', 'policies']).filter((name) => !FIELD.test(name))

/** The names of traits, replies and contexts, which requests read. */
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

test.each(CASES)(
  'no name that the sources read changes a response as a property of Object.prototype: %s, polluted %s limiters are made',
  async (_, when, value) => {
    const newStore = () => memoryStore({ clock: () => 1e12 })
    const names = byEffort({ usual: READ, full: NAMES })
    expect(await differencesOf(httpScenarios(connection), newStore, names, value, when)).toEqual([])
  },
)
