import { counted, grouped } from '@sluice/core/internal'
import { infoCheck } from '../check.js'
import { ok, warning } from '../finding.js'

/** Share of maxclients above which there is soon no room for another process. */
const NEARLY_FULL = 0.9

/** Whether there is room for the connections of more processes. */
export const connections = infoCheck('connections', (info, server) => {
  const open = Number(info.connected_clients)
  const maxClients = Number(info.maxclients ?? 0)
  const rejected = Number(info.rejected_connections ?? 0)
  const data = { connected: open, maxClients, rejected }
  const findings = []
  if (server.hasNeedlessPassword) {
    findings.push(
      warning(
        'Redis needs no password from this user, though REDIS_URL has one: anyone who reaches its port can change every limit.',
        'Set requirepass or an ACL user with a password.',
      ),
    )
  }
  if (maxClients > 0 && open >= NEARLY_FULL * maxClients) {
    findings.push(
      warning(
        `${grouped(open)} of ${counted(maxClients, 'connection')} are open, and no more than that are accepted.`,
        'Raise maxclients, or close connections: each store opens one beside that of its client.',
        data,
      ),
    )
  } else {
    const before = rejected > 0 ? `; ${grouped(rejected)} were rejected since it started` : ''
    findings.push(
      ok(
        `${grouped(open)} of ${maxClients > 0 ? grouped(maxClients) : 'an unknown number of'} connections are open${before}.`,
        data,
      ),
    )
  }
  return findings
})
