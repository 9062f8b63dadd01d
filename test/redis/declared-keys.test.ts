import { expect, test } from 'vitest'
import { singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { monitor } from '../support/monitor.js'
import { startRedis } from '../support/redis-server.js'
import { useEveryFeature } from '../support/store-features.js'
import { until } from '../support/until.js'

const open = closedAfterEach()

/** Commands of scripts whose arguments are all keys; of the others that have any, the first argument is one. */
const OF_KEYS = new Set(['exists', 'del', 'unlink'])
const OF_NO_KEY = new Set(['time'])

test('each script declares all keys that it touches, as Dragonfly and some proxies require', async () => {
  const server = await startRedis()
  open.push(() => server.stop())
  let declared = new Set<string>()
  let scripts = 0
  let isOver = false
  const undeclared = new Set<string>()
  const end = await monitor(server.url, ([name = '', ...args], isOfScript) => {
    const command = name.toLowerCase()
    if (command === 'evalsha' || command === 'eval') {
      scripts++
      declared = new Set(args.slice(2, 2 + Number(args[1])))
    } else if (command === 'echo') isOver = true
    else if (isOfScript && !OF_NO_KEY.has(command)) {
      for (const key of OF_KEYS.has(command) ? args : args.slice(0, 1))
        if (!declared.has(key)) undeclared.add(`${command} ${key}`)
    }
  })
  open.push(async () => end())
  const { client, ready, close } = singleClients['ioredis 6'](server.port)
  open.push(close)
  await ready
  await useEveryFeature(client, ['k', '{k}'], {
    flushScripts: () => server.call('SCRIPT', 'FLUSH'),
    outage: async (during) => {
      await server.call('CONFIG', 'SET', 'min-replicas-to-write', 9)
      await during()
      await server.call('CONFIG', 'SET', 'min-replicas-to-write', 0)
    },
  })
  await server.call('ECHO', 'over')
  await until('all commands are shown', () => isOver)
  expect(scripts).toBeGreaterThan(100)
  expect([...undeclared]).toEqual([])
})
