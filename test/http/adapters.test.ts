import { adapterContract } from '@sluice/testing'
import { describe, test } from 'vitest'
import { FRAMEWORKS } from './support/frameworks.js'
import { nestApp } from './support/nest.js'
import { nodeApp } from './support/node-http.js'

const ADAPTERS = {
  ...FRAMEWORKS,
  'node:http': nodeApp,
  'Nest on Express': nestApp('express'),
  'Nest on Fastify': nestApp('fastify'),
}

for (const [name, make] of Object.entries(ADAPTERS)) {
  adapterContract({ name, make, describe, test })
}
