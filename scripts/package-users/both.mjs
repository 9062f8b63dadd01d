// One program that loads a package by import in one place and by require in another: there is one copy of each class.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const core = await import('@sluice/core')
for (const name of ['core', 'express', 'fastify', 'koa']) {
  const imported = await import(`@sluice/${name}`)
  const required = require(`@sluice/${name}`)
  assert.deepEqual(Object.keys(imported).sort(), Object.keys(required).sort(), `@sluice/${name}`)
  for (const key of Object.keys(imported)) assert.equal(imported[key], required[key], `@sluice/${name}: ${key}`)
  assert.equal(required.Verdict, core.Verdict, `@sluice/${name}: Verdict`)
}
const limiter = core.createLimiter({ limit: 1, window: '1m' })
const verdict = await limiter.consume('ann')
const { Verdict } = require('@sluice/express')
assert(verdict instanceof Verdict)
assert.equal(await limiter.refund('ann', verdict), true)
