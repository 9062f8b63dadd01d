// Deep: the other two files run the same contract with this client, and with this server.
import { singleClients } from '../../support/clients.js'
import { startRedis } from '../../support/redis-server.js'
import { contractsOnRedis } from './on-redis.js'

const server = await startRedis()
await contractsOnRedis('Redis through node-redis', server, singleClients['redis 6'](server.port), 0.05)
