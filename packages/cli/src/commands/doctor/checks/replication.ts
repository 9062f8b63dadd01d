import { counted } from '@sluice/core/internal'
import { nodeName } from '../../../redis/target.js'
import { infoCheck } from '../check.js'
import { type CheckResult, error, ok, warning } from '../finding.js'

/** Whether this server takes writes: a replica does not, nor a master that misses the replicas it insists on. */
export const replication = infoCheck('replication', async (info, server) => {
  if (info.role === 'slave') return [ofReplica(info)]
  const replicas = Number(info.connected_slaves ?? 0)
  // Only there where the setting is above 0.
  if (info.min_slaves_good_slaves !== undefined) {
    const good = Number(info.min_slaves_good_slaves)
    const wanted = Number((await server.setting('replication', 'min-replicas-to-write')) ?? 1)
    if (good < wanted) {
      return [
        error(
          `Redis refuses writes (NOREPLICAS): ${good} of the ${wanted} replicas that min-replicas-to-write demands follow it.`,
          'Start its replicas, or lower min-replicas-to-write.',
          { role: 'master', replicas, goodReplicas: good, minReplicasToWrite: wanted },
        ),
      ]
    }
  }
  return [ok(`It is a master with ${counted(replicas, 'replica')}.`, { role: 'master', replicas })]
})

function ofReplica(info: Readonly<Record<string, string>>): CheckResult {
  const master = nodeName(info.master_host ?? '', Number(info.master_port))
  const data = { role: 'replica', master, linkStatus: info.master_link_status }
  const link = info.master_link_status === 'up' ? '' : ', and its link to the master is down'
  const advice = `Connect to the master (${master}), or by Sentinel or Cluster, which find it.`
  if (info.slave_read_only === '0') {
    return warning(
      `It is a writable replica: what is counted here is lost with the next synchronisation${link}.`,
      advice,
      data,
    )
  }
  return error(`It is a read-only replica, so every decision fails${link}.`, advice, data)
}
