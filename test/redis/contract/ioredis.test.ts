// Takes long: begins first.
import { singleClients } from '../../support/clients.js'
import { startRedis } from '../../support/redis-server.js'
import { contractsOnRedis } from './on-redis.js'

const server = await startRedis()
await contractsOnRedis('Redis', server, singleClients['ioredis 6'](server.port), 0.15)
