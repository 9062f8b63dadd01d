import { respondersContract } from './responders.contract.js'
import { HANDLER_APPS } from './support/handler-apps.js'

for (const [name, factory] of Object.entries(HANDLER_APPS)) respondersContract(name, factory)
