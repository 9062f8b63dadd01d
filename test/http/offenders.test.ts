import { offendersContract } from './offenders.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) offendersContract(name, factory)
