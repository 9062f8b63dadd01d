import { describe, expect, test } from 'vitest'
import { BlockIndex } from '../../../packages/core/src/redis/blocks/block-index.js'
import { BlockKeys } from '../../../packages/core/src/redis/blocks/block-keys.js'
import { erasedField, fieldOf, type IndexEntry } from '../../../packages/core/src/redis/blocks/entry.js'
import { StoreTime } from '../../../packages/core/src/redis/blocks/store-time.js'
import type { Connection } from '../../../packages/core/src/redis/clients/connection.js'

const SINCE = 1000
const ENTRY: IndexEntry = {
  policy: 'api',
  identity: 'ip=192.0.2.7',
  until: 2 ** 47,
  since: SINCE,
  times: 1,
  isEnded: false,
  encoded: '',
  isUnwritten: undefined,
}
const FIELD = fieldOf(ENTRY.policy, ENTRY.identity)

/** Writes a block in a cluster whose index has these fields by then. Resolves to the commands on its keys. */
async function written(index: Record<string, string>): Promise<string[]> {
  const called: string[] = []
  const connection = {
    isCluster: true,
    keyPrefix: '',
    isClosed: () => false,
    startsUntil: () => 0,
    lastError: () => undefined,
    whenReady(callback: () => void) {
      callback()
      return () => {}
    },
    async send(_key: string, command: (sent: Set<string>) => readonly string[]) {
      const [name = '', , field = ''] = command(new Set())
      if (name === 'HMGET') return [field in index ? Buffer.from(index[field] as string) : null]
      called.push(/^EVAL/.test(name) ? 'write' : 'delete')
      return 1
    },
  } as unknown as Connection
  const options = { connection, prefix: 'sluice:', timeoutMs: 1000, clock: undefined }
  const time = new StoreTime(undefined)
  await new BlockKeys(options).write([ENTRY], new BlockIndex({ ...options, name: 'blocks', marker: undefined, time }))
  return [...new Set(called)]
}

describe('a block key rewritten in a cluster', () => {
  test('a rewritten block key stays if the index was evicted meanwhile', async () => {
    expect(await written({})).toEqual(['write'])
    expect(await written({ '': `1 other ${SINCE - 1}` })).toEqual(['write'])
  })

  test('a rewritten block key stays if the index has the block', async () => {
    expect(await written({ '': '1 one 0', [FIELD]: `${ENTRY.until} ${SINCE} 1 0 ` })).toEqual(['write'])
  })

  test('a rewritten block key is deleted if the block was ended meanwhile', async () => {
    expect(await written({ '': '1 one 0', [FIELD]: `${ENTRY.until} ${SINCE + 1} 1 1 ` })).toEqual(['write', 'delete'])
  })

  test('a rewritten block key is deleted if all blocks were ended meanwhile', async () => {
    expect(await written({ '': `1 one ${SINCE}` })).toEqual(['write', 'delete'])
  })

  test('a rewritten block key is deleted if its identity was forgotten meanwhile', async () => {
    const end = `${ENTRY.until} ${SINCE + 1} 1 1 `
    const index = { '': '1 one~1.salt 0', [erasedField(FIELD, 'salt')]: end }
    expect(await written(index)).toEqual(['write', 'delete'])
  })
})
