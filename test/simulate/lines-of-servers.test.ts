import { describe, expect, test } from 'vitest'
import { formatOf } from '../../packages/simulate/src/formats/index.js'
import { openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'
import { LINES_OF_SERVERS, type Said, type ServerLines } from './fixtures/lines-of-servers.js'
import { filesOf } from './support.js'

async function read({ lines, format }: ServerLines): Promise<{ said: Said[]; formats: readonly string[] }> {
  const { log } = filesOf({ log: `${lines.join('\n')}\n` })
  const logs = await openLogs([log], format === undefined ? {} : { format: formatOf(format) })
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  return { said: records.map(saidBy), formats: logs.formats }
}

function saidBy({ startMs, durationMs, ip, method, target, status, bytes, host, user }: LogRecord): Said {
  const said = { at: new Date(startMs).toISOString(), ms: durationMs, ip, method, target, status, bytes, host, user }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as unknown as Said
}

describe('lines of servers are read rightly, or are an error that says what to do', () => {
  test('there are sixty kinds', () => {
    expect(new Set(LINES_OF_SERVERS.map(({ by }) => by)).size).toBeGreaterThanOrEqual(60)
  })

  test.each(LINES_OF_SERVERS.map((each) => [each.by, each] as const))('%s', async (_by, each) => {
    const { says } = each
    if (typeof says === 'string') {
      await expect(read(each)).rejects.toThrow(says)
      return
    }
    const { said } = await read(each)
    const expected = [...says].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
    const rounded = (all: readonly Said[]) =>
      all.map(({ at, ms, ...rest }) => ({
        ...rest,
        at: new Date(at).toISOString(),
        ...(ms !== undefined && { ms: Math.round(ms * 1000) / 1000 }),
      }))
    expect(rounded(said)).toEqual(rounded(expected))
  })
})
