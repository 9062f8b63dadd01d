import { adapterContract } from '@sluice/testing'
import { describe, test } from 'vitest'
import { FRAMEWORKS } from './support/frameworks.js'
import { nodeApp } from './support/node-http.js'

for (const [name, make] of Object.entries({ ...FRAMEWORKS, 'node:http': nodeApp })) {
  adapterContract({ name, make, describe, test })
}
