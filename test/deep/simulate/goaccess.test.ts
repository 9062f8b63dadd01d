// Deep: needs goaccess.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'
import { generateLog } from '../../../bench/lib/log-lines.js'
import { Figures } from '../../../packages/simulate/src/figures/figures.js'
import { Lane } from '../../../packages/simulate/src/lane.js'
import { openLogs } from '../../../packages/simulate/src/read/open-logs.js'
import { readingOf } from '../../../packages/simulate/src/replay/reading.js'
import { RecordContext } from '../../../packages/simulate/src/replay/record-context.js'
import { ensure } from '../../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../../scripts/programs.js'
import { filesOf } from '../../simulate/support.js'

test('counts per client equal those of goaccess', { timeout: 120_000 }, async () => {
  await ensure([PROGRAMS.goaccess])
  const text = Buffer.concat([...generateLog({ seed: 5, lines: 100_000, clients: 3000 })]).toString('latin1')
  // Addresses of IPv6 are counted by /64 here, and one by one there.
  const log = text.split('\n').filter((line) => line !== '' && !line.split(' ', 1)[0]?.includes(':'))
  const files = filesOf({ 'access.log': `${log.join('\n')}\n`, 'goaccess.json': '' })
  execFileSync('goaccess', [
    files['access.log'],
    '--log-format=COMBINED',
    '--no-global-config',
    '--max-items=1000000',
    '-o',
    files['goaccess.json'],
  ])
  const { hosts, general } = JSON.parse(readFileSync(files['goaccess.json'], 'utf8'))
  const theirs = Object.fromEntries(
    (hosts.data as { data: string; hits: { count: number } }[]).map(({ data, hits }) => [data, hits.count]),
  )

  const object = { version: 1, policies: { api: { limits: [{ algorithm: 'gcra', limit: 100, window: '1m' }] } } }
  const loaded = await policies.from({ object })
  const figures = new Figures(loaded)
  const lane = new Lane(loaded, figures, 0, { maxKeys: 1e6, maxBytes: 2 ** 30 })
  const reading = readingOf({}, false)
  for await (const batch of await openLogs([files['access.log']])) {
    for (const record of batch) await lane.play(new RecordContext(record, reading, record.startMs, lane.time))
  }
  const table = figures.addresses
  const ours = Object.fromEntries(
    Array.from({ length: table.size }, (_, row) => [table.nameOf(row), table.countsOf(row, 0).requests]),
  )
  expect(figures.total).toBe(log.length)
  expect(general.valid_requests).toBe(log.length)
  expect(Object.keys(ours).length).toBeGreaterThan(1000)
  expect(ours).toEqual(theirs)
  await loaded.close()
})
