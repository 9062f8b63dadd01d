import { adapterContract } from './adapters.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) adapterContract(name, factory)
