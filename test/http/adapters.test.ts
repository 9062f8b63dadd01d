import { adapterContract } from './adapters.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'
import { nodeApp } from './support/node-http.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) adapterContract(name, factory)
adapterContract('node:http', nodeApp)
