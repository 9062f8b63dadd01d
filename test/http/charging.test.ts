import { chargingContract } from './charging.contract.js'
import { BODY_APPS } from './support/body-apps.js'

for (const [name, factory] of Object.entries(BODY_APPS)) chargingContract(name, factory)
