import { redisStore } from '@sluice/core'
import { fairContract } from '../../http/fair.contract.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client } = await redisForTests()

for (const [name, factory] of Object.entries(FRAMEWORKS))
  fairContract(name, factory, () => redisStore(client, { timeout: 5000 }))
