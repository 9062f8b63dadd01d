import { listed } from '@sluice/core/internal'
import type { Server } from '../../redis/server.js'
import { type Finding, warning } from './finding.js'

/** One finding for all properties that could not be checked: they may be in order, or not. */
export function visibility(servers: ReadonlySet<Server>): Finding[] {
  const denied = new Map<string, Set<string>>()
  for (const server of servers) {
    for (const [command, purposes] of server.denied) {
      const all = denied.get(command) ?? new Set()
      for (const purpose of purposes) all.add(purpose)
      denied.set(command, all)
    }
  }
  if (denied.size === 0) return []
  const parts = [...denied].map(
    ([command, purposes]) => `${command.toUpperCase().replace('|', ' ')} (${[...purposes].join(', ')})`,
  )
  const rules = [...denied.keys()].map((command) => `+${command}`).join(' ')
  return [
    {
      check: 'visibility',
      ...warning(
        `Not permitted to see: ${listed(parts)}.`,
        `Limits do not need it; to see more, run the doctor as a user of your operators who has ${rules}`,
        { denied: Object.fromEntries([...denied].map(([command, purposes]) => [command, [...purposes]])) },
      ),
    },
  ]
}
