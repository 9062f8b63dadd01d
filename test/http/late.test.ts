import { lateContract } from './late.contract.js'
import { LATE_APPS } from './support/late-apps.js'

for (const [name, factory] of Object.entries(LATE_APPS)) lateContract(name, factory)
