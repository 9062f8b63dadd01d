import { respondersContract } from './responders.contract.js'
import { ANSWERING } from './support/answers.js'

for (const [name, factory] of Object.entries(ANSWERING)) respondersContract(name, factory)
