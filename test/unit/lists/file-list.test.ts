// Runs alone: some warnings come once in a process.
import { appendFile, mkdir, mkdtemp, open, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FileList, type FileListOptions, fileList, rateLimit, SluiceError } from '@sluice/express'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'
import { until } from '../../support/until.js'

let folder: string
const lists: FileList[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lists-'))
})
afterEach(async () => {
  await Promise.all(lists.splice(0).map((list) => list.close()))
  await rm(folder, { recursive: true, force: true })
})

function watchFile(name: string, options?: FileListOptions): FileList {
  const list = fileList(join(folder, name), options)
  lists.push(list)
  return list
}

async function fileWith(name: string, text: string, options?: FileListOptions): Promise<FileList> {
  await writeFile(join(folder, name), text)
  const list = watchFile(name, options)
  await list.ready()
  return list
}

/** As programs should: the path always holds a whole file. */
async function replace(name: string, text: string): Promise<void> {
  await writeFile(join(folder, `${name}.new`), text)
  await rename(join(folder, `${name}.new`), join(folder, name))
}

const holds = (list: FileList, value: string, kind = 'ip') => list.match({ kind, value }) !== undefined
const reason = (list: FileList, value: string) => list.match({ kind: 'ip', value })?.reason

describe('fileList: formats', () => {
  test('a plain list accepts a range per line, comments, empty lines and any line ending', async () => {
    const text =
      '\ufeff# ours\r\n192.0.2.0/24\r\n\n  198.51.100.7 # scraper \n203.0.113.1-203.0.113.9;SBL1\n2001:db8::/32'
    const list = await fileWith('deny.txt', text)
    expect(list.size).toBe(4)
    expect(['192.0.2.255', '198.51.100.7', '203.0.113.5', '2001:db8::1'].map((value) => holds(list, value))).toEqual([
      true,
      true,
      true,
      true,
    ])
    expect([reason(list, '192.0.2.1'), reason(list, '198.51.100.7'), reason(list, '203.0.113.9')]).toEqual([
      '',
      'scraper',
      'SBL1',
    ])
    expect(holds(list, '203.0.113.10')).toBe(false)
  })

  test('a netset list accepts published files, and the output of ipset save with its timeouts', async () => {
    const text = [
      '#',
      '# level1',
      '192.0.2.0/24',
      'create bad hash:net family inet hashsize 1024 maxelem 65536 timeout 300 comment',
      'add bad 198.51.100.0/24 timeout 600 comment "too many"',
      'add bad 203.0.113.7 timeout 0',
    ].join('\n')
    const list = await fileWith('level1.netset', text, { format: 'netset' })
    expect(list.size).toBe(3)
    const timed = list.match({ kind: 'ip', value: '198.51.100.9' })
    expect(timed?.reason).toBe('too many')
    expect(Math.abs((timed?.expiresAt as number) - Date.now() - 600_000)).toBeLessThan(300_000)
    expect(list.match({ kind: 'ip', value: '203.0.113.7' })?.expiresAt).toBeUndefined()
  })

  test('a json list accepts ranges, or values by kind, with reasons and expiries', async () => {
    const ranges = await fileWith('ranges.json', '["192.0.2.0/24", { "value": "2001:db8::/32", "reason": "lab" }]', {
      format: 'json',
    })
    expect([holds(ranges, '192.0.2.1'), reason(ranges, '2001:db8::1')]).toEqual([true, 'lab'])
    const ends = [Date.now() + 3_600_000, new Date(Date.now() + 3_600_000).toISOString(), 0]
    const data = {
      ip: ['192.0.2.7'],
      user: ['ann', 42, ...ends.map((expiresAt, i) => ({ value: `u${i}`, expiresAt }))],
      'header:x-api-key': ['k-1'],
    }
    const byKind = await fileWith('kinds.json', JSON.stringify(data), { format: 'json' })
    expect([...byKind.kinds].sort()).toEqual(['header:x-api-key', 'ip', 'user'])
    expect(['ann', '42', 'u0', 'u1', 'u2', 'bob'].map((value) => holds(byKind, value, 'user'))).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
    ])
    // A header is hashed, as it is counted.
    expect(holds(byKind, 'k-1', 'header:x-api-key')).toBe(false)
  })

  test('a crowdsec list takes bans of addresses and ranges until they end', async () => {
    const decision = {
      id: 1,
      origin: 'cscli',
      scenario: "manual 'ban'",
      scope: 'Ip',
      simulated: false,
      type: 'ban',
      value: '192.0.2.7',
      duration: '3h59m12.5s',
    }
    const alerts = [
      { id: 7, decisions: [decision, { ...decision, scope: 'Range', value: '198.51.100.0/24', duration: '10m' }] },
      { id: 8, decisions: [{ ...decision, value: '192.0.2.8', duration: '-3m' }] },
      {
        id: 9,
        decisions: [
          { ...decision, value: '192.0.2.9', type: 'captcha' },
          { ...decision, scope: 'Country', value: 'ZZ' },
        ],
      },
      { id: 10, decisions: [{ ...decision, value: '192.0.2.10', simulated: true }] },
      { id: 11, decisions: null },
    ]
    const list = await fileWith('decisions.json', JSON.stringify(alerts, null, 2), { format: 'crowdsec' })
    const found = ['192.0.2.7', '198.51.100.1', '192.0.2.8', '192.0.2.9', '192.0.2.10'].map((value) =>
      holds(list, value),
    )
    expect(found).toEqual([true, true, false, false, false])
    expect(reason(list, '192.0.2.7')).toBe("manual 'ban'")
    await writeFile(join(folder, 'none.json'), 'null')
    const none = watchFile('none.json', { format: 'crowdsec', allowShrink: true })
    await none.ready()
    expect(none.size).toBe(0)
  })

  test.each([
    ['plain', '192.0.2.1\n\nexample.com\n', ':3: expected an address, or a range'],
    ['plain', '192.0.2.1\r\n192.0.2.9-192.0.2.3', ':2: '],
    ['netset', '192.0.2.1\nadd bad 192.0.2.0/24 nomatch', ':2: expected no entry with "nomatch"'],
    ['json', '[\n "192.0.2.1",\n "192.0.2.0/33"\n]', ':3: expected an address'],
    ['json', '[\n "192.0.2.1",\n]', ':3: expected JSON'],
    ['json', '{ "ip": ["192.0.2.1"],\n "user": [""] }', ':2: expected a non-empty text'],
    ['json', '{\n "ip": {} }', ':2: expected an array'],
    ['json', '[{ "value": "192.0.2.1",\n "expiresAt": "soon" }]', ':2: expected a time'],
    ['json', '"192.0.2.1"', ':1: expected an object'],
    ['crowdsec', '{}', ':1: expected an array'],
    ['crowdsec', '[{ "decisions": [\n{ "scope": "Ip", "type": "ban", "value": "eve" }] }]', ':2: expected an address'],
    [
      'crowdsec',
      '[{ "scope": "Ip", "type": "ban",\n "value": "192.0.2.1", "duration": "long" }]',
      ':2: expected a duration',
    ],
    ['plain', '', ': expected entries, got none'],
    ['json', '[]', ': expected entries, got none'],
  ] as const)('a malformed %s list is rejected with file and line: %j', async (format, text, message) => {
    await writeFile(join(folder, 'bad'), text)
    const warnings = await warningsDuring(async () => {
      const list = watchFile('bad', { format })
      await expect(list.ready()).rejects.toMatchObject({
        code: 'INVALID_LIST',
        message: expect.stringContaining(`bad${message}`),
      })
      expect(list.error).toBeInstanceOf(SluiceError)
    })
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'SLUICE_LIST_FAILED', message: expect.stringContaining(message) }),
    ])
  })
})

describe('fileList: changes', () => {
  test('a list reloads each time a file is renamed onto its path', async () => {
    const list = await fileWith('deny.txt', '192.0.2.1')
    for (let i = 2; i < 6; i++) {
      await replace('deny.txt', `192.0.2.${i}`)
      await until('the file is noticed', () => holds(list, `192.0.2.${i}`))
      expect(holds(list, `192.0.2.${i - 1}`)).toBe(false)
    }
    expect(list.version).toBe(5)
  })

  test('a file written in place, piece by piece, is not loaded before it is whole', async () => {
    const list = await fileWith('deny.txt', '192.0.2.1\n')
    const seen = new Set<number>()
    const file = await open(join(folder, 'deny.txt'), 'w')
    for (let i = 0; i < 20; i++) {
      await file.write(`198.51.100.${i}\n`)
      await sleep(20)
      seen.add(list.size)
    }
    await file.close()
    await until('the file is noticed', () => holds(list, '198.51.100.19'))
    expect([...seen]).toEqual([1])
    expect([list.size, list.version]).toEqual([20, 2])
  })

  test('a file that is deleted and created again is loaded once it is whole', async () => {
    const list = await fileWith('deny.txt', '192.0.2.1\n192.0.2.2')
    await unlink(join(folder, 'deny.txt'))
    expect(holds(list, '192.0.2.1')).toBe(true)
    await writeFile(join(folder, 'deny.txt'), '192.0.2.3\n')
    await appendFile(join(folder, 'deny.txt'), '192.0.2.4\n')
    await until('the file is noticed', () => holds(list, '192.0.2.4'))
    expect([holds(list, '192.0.2.3'), list.version]).toEqual([true, 2])
  })

  test('a link whose directory is exchanged, as by Kubernetes, is reloaded', async () => {
    await mkdir(join(folder, 'one'))
    await mkdir(join(folder, 'two'))
    await writeFile(join(folder, 'one/deny.txt'), '192.0.2.1')
    await writeFile(join(folder, 'two/deny.txt'), '192.0.2.2')
    await symlink('one', join(folder, 'data'))
    await symlink('data/deny.txt', join(folder, 'deny.txt'))
    const list = watchFile('deny.txt')
    await list.ready()
    await symlink('two', join(folder, 'data.new'))
    await rename(join(folder, 'data.new'), join(folder, 'data'))
    await until('the file is noticed', () => holds(list, '192.0.2.2'))
  })

  test('a malformed, empty or less than half as long list is rejected with a warning, and the last one stays', async () => {
    const four = '192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4\n'
    const list = await fileWith('deny.txt', four)
    for (const [text, message] of [
      ['192.0.2.1\neve\n', 'deny.txt:2: expected an address'],
      ['192.0.2.1\n', 'expected at least half of the 4 entries'],
      ['', 'expected entries, got none'],
    ]) {
      const warnings = await warningsDuring(async () => {
        await replace('deny.txt', text as string)
        await until('the file is noticed', () => list.error?.message.includes(message as string) === true)
      })
      expect(warnings).toEqual([
        expect.objectContaining({ message: expect.stringContaining('the 4 entries from before stay in use') }),
      ])
      expect([list.size, list.version, holds(list, '192.0.2.4')]).toEqual([4, 1, true])
    }
    await replace('deny.txt', '192.0.2.1\n192.0.2.2\n')
    await until('the file is noticed', () => list.size === 2)
    expect([list.error, holds(list, '192.0.2.4')]).toEqual([undefined, false])
  })

  test('with allowShrink a list may shrink to nothing', async () => {
    const list = await fileWith('deny.txt', '192.0.2.1\n192.0.2.2\n192.0.2.3\n', { allowShrink: true })
    await replace('deny.txt', '# none\n')
    await until('the file is noticed', () => list.size === 0)
    expect(holds(list, '192.0.2.1')).toBe(false)
  })

  test('a missing file is an error at the start, and is loaded once it exists', async () => {
    const list = watchFile('deny.txt')
    await expect(list.ready()).rejects.toMatchObject({
      code: 'INVALID_LIST',
      message: expect.stringContaining('ENOENT'),
    })
    await replace('deny.txt', '192.0.2.1\n')
    await until('the file is noticed', () => holds(list, '192.0.2.1'))
    await list.ready()
  })

  test('a closed list keeps its entries and does not follow the file', async () => {
    const list = await fileWith('deny.txt', '192.0.2.1')
    await list.close()
    await replace('deny.txt', '192.0.2.2')
    await sleep(600)
    expect([holds(list, '192.0.2.1'), holds(list, '192.0.2.2')]).toEqual([true, false])
    const never = watchFile('none.txt')
    const ready = never.ready()
    await never.close()
    await expect(ready).rejects.toMatchObject({ code: 'INVALID_LIST' })
  })
})

describe('fileList in a policy', () => {
  test('kinds that the policy does not know cause one warning, and match nothing', async () => {
    const list = await fileWith('deny.json', '{ "user": ["ann"], "ip": ["192.0.2.7"] }', { format: 'json' })
    expect(() => rateLimit({ limit: 1, window: '1h', deny: list })).toThrow(/got "user" in deny.json/)
    const late = watchFile('late.json', { format: 'json' })
    const { limiter } = rateLimit({ limit: 1, window: '1h', deny: late })
    const warnings = await warningsDuring(async () => {
      await replace('late.json', '{ "user": ["ann"], "ip": ["192.0.2.7"] }')
      await until('the file is noticed', () => late.size === 2)
      expect(await limiter.peek({ ip: '192.0.2.7' })).toMatchObject({ reason: 'denied', list: { list: 'late.json' } })
      expect(await limiter.peek({ ip: '192.0.2.8' })).toMatchObject({ allowed: true })
    })
    expect(warnings.filter((warning) => 'code' in warning && warning.code === 'SLUICE_LIST_KIND')).toHaveLength(1)
  })

  test.each([
    [[''], /path: expected the path/],
    [['a', { format: 'csv' }], /format: expected "plain" or "netset"/],
    [['a', { allowShrink: 1 }], /allowShrink: expected true or false/],
    [['a', { watch: true }], /watch: unknown option/],
  ])('fileList rejects wrong arguments: %j', (given, message) => {
    expect(() => fileList(...(given as unknown as [string]))).toThrow(message)
  })
})
