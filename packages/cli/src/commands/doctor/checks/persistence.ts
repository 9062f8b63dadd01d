import type { Server } from '../../../redis/server.js'
import { infoCheck } from '../check.js'
import { type CheckResult, error, ok, warning } from '../finding.js'

/** Whether counts and blocks outlive a restart, and whether a failed save stops writes. */
export const persistence = infoCheck('persistence', async (info, server) => {
  const data = {
    appendOnly: info.aof_enabled === '1',
    lastSave: info.rdb_last_bgsave_status,
    lastAppend: info.aof_last_write_status,
  }
  if (data.appendOnly && data.lastAppend !== 'ok') {
    return [
      error(
        'Redis cannot write its append-only file, and refuses writes until it can (MISCONF).',
        'Look for the cause in its log: mostly a full disk, or a folder that it may not write to.',
        data,
      ),
    ]
  }
  if (data.lastSave === 'err') return [await ofFailedSave(server, data)]
  if (data.appendOnly) return [ok('An append-only file keeps counts and blocks over a restart.', data)]
  return [await ofSnapshots(server, data)]
})

async function ofFailedSave(server: Server, data: CheckResult['data']): Promise<CheckResult> {
  const stops = await server.setting('persistence', 'stop-writes-on-bgsave-error')
  const points = await server.setting('persistence', 'save')
  const advice = 'Look for the cause in its log: mostly a full disk, or no memory to fork.'
  if (stops === 'no' || points === '') return warning('The last snapshot of Redis failed.', advice, data)
  const [effect, say] =
    stops === undefined ? ['probably refuses writes', warning] : ['refuses writes until one succeeds', error]
  return (say as typeof error)(`The last snapshot of Redis failed, so it ${effect} (MISCONF).`, advice, data)
}

async function ofSnapshots(server: Server, data: CheckResult['data']): Promise<CheckResult> {
  const points = await server.setting('persistence', 'save')
  if (points === undefined)
    return ok('There is no append-only file; whether snapshots are taken is not to be seen.', data)
  const all = { ...data, save: points }
  if (points === '') return ok('Nothing is saved to disk: a restart forgets counts and blocks.', all)
  return ok('Snapshots are taken: a crash forgets what was counted since the last one.', all)
}
