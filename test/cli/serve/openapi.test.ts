import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { ask, decide, documentOf, endWithTests, json, serving } from './support.js'

endWithTests()

const DOCUMENT = JSON.parse(readFileSync(new URL('../../../packages/cli/openapi.json', import.meta.url), 'utf8'))

test('the OpenAPI document is valid', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(DOCUMENT))
  expect([valid, errors]).toEqual([true, undefined])
})

/** Whether a value matches this schema of the document. */
function checkerOf() {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  ajv.addSchema({ $id: 'api', ...DOCUMENT })
  return (name: string, value: unknown) => {
    const validate = ajv.getSchema(`api#/components/schemas/${name}`)
    return { right: validate?.(value), errors: validate?.errors }
  }
}

test('requests and responses of the decider match the OpenAPI document', async () => {
  const check = checkerOf()
  const right = (name: string, value: unknown) => expect(check(name, value)).toEqual({ right: true, errors: null })
  const text = documentOf(`
all: { key: user, limits: [{ limit: 1, window: 1m }] }
listed: { match: { paths: [/listed] }, deny: { ip: [192.0.2.0/24] }, limits: [{ limit: 1, window: 1m }] }
reported: { enforce: { mode: report }, limits: [{ limit: 1, window: 1m }] }
`)
  const decider = await serving(json(text, '--key', 'user'))
  const statuses = new Set<number>()
  for (const request of [
    { path: '/', ip: '192.0.2.7', keys: { user: 'ann' } },
    { method: 'POST', path: '/?a', ip: '192.0.2.7', keys: { user: 'ann' }, headers: { host: 'a' }, tiers: {}, cost: 1 },
    { path: '/', ip: '192.0.2.7', keys: { user: 'bob' }, cost: 7 },
    { path: '/listed', ip: '192.0.2.7', keys: { user: 7 } },
    { path: '/', ip: '192.0.2.7' },
  ]) {
    right('Request', request)
    const decision = (await decide(decider, request)).json
    right('Decision', decision)
    statuses.add(decision.status)
  }
  expect([...statuses].sort()).toEqual([200, 400, 403, 429])
  const batch = { requests: [{ path: '/', ip: '192.0.2.7', keys: { user: 'cy' } }] }
  right('Batch', batch)
  right('Decisions', (await decide(decider, batch)).json)
  for (const path of ['/healthz', '/readyz']) right('Health', (await ask(decider, { path })).json)
  for (const wrong of [{}, { path: 'x' }, { path: '/', Ip: '1.2.3.4' }, { path: '/', cost: -1 }, { requests: [] }]) {
    expect(check('requests' in wrong ? 'Batch' : 'Request', wrong).right).toBe(false)
    const { status, json: problem } = await decide(decider, wrong)
    expect(status).toBe(400)
    right('Problem', problem)
  }
})
