// Runs alone: it listens to the events of all stores of its process.
import { eventsContract } from './events.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) eventsContract(name, factory)
