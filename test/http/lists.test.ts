import { listsContract } from './lists.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) listsContract(name, factory)
