// One process of a service that knows the blocks and lists of its store, on the built package as users get it. Reports their number over IPC.
import { redisStore } from '@sluice/core'
import { Cluster, Redis } from 'ioredis'

const ports = (process.env.REDIS_PORTS ?? '').split(',').map(Number)
const nodes = ports.map((port) => ({ host: '127.0.0.1', port }))
const client =
  nodes.length > 1 ? new Cluster(nodes) : new Redis(/** @type {{ host: string, port: number }} */ (nodes[0]))
const store = redisStore(client, { timeout: 15_000, warnings: { SLUICE_BLOCKS_RESTORED: false } })
const list = store.list('deny')

process.on('message', async () => {
  const { entries } = await list.list()
  process.send?.({ known: store.blocks.known, listed: entries.length })
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
await store.ready()
process.send?.('ready')
