import { memoryStore } from '@sluice/core'
import { fairContract } from './fair.contract.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) fairContract(name, factory, memoryStore)
