// Release: runs clusters. Takes long: begins first.
import { clusterClients } from '../../support/clients.js'
import { startCluster } from '../../support/redis-cluster.js'
import { contractsOnRedis } from './on-redis.js'

const cluster = await startCluster()
await contractsOnRedis('a Redis Cluster of three', cluster, clusterClients['redis 6 cluster'](cluster), 0.1)
