import { eventsContract } from './events.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) eventsContract(name, factory)
