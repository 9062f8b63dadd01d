import { bansContract } from './bans.contract.js'
import { ANSWERING } from './support/answers.js'

for (const [name, factory] of Object.entries(ANSWERING)) bansContract(name, factory)
