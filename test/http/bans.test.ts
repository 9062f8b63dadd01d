import { bansContract } from './bans.contract.js'
import { HANDLER_APPS } from './support/handler-apps.js'

for (const [name, factory] of Object.entries(HANDLER_APPS)) bansContract(name, factory)
