import { durationText } from '@sluice/core/internal'
import type { ProposedLimit } from './proposal.js'
import { NETWORK_KEY } from './traffic.js'

/** The document of the limits, in report mode: a policy each for clients and networks of a group. */
export function documentOf(limits: readonly ProposedLimit[]): object {
  const policies: Record<string, object> = {}
  for (const { policy, paths, counts } of limits) {
    policies[policy] ??= {
      ...(paths !== undefined && { match: { paths: [paths] } }),
      ...(counts === 'networks' && { key: NETWORK_KEY }),
      enforce: { mode: 'report' },
      limits: limits
        .filter((limit) => limit.policy === policy)
        .map(({ limit, windowMs }) => ({ limit, window: durationText(windowMs) })),
    }
  }
  return { version: 1, policies }
}

/** The same as YAML. */
export function yamlOf(limits: readonly ProposedLimit[], heading: readonly string[]): string {
  const lines = [...heading.map((line) => `# ${line}`), 'version: 1', 'policies:']
  for (const name of new Set(limits.map(({ policy }) => policy))) {
    const own = limits.filter(({ policy }) => policy === name)
    const [{ paths, counts }] = own as [ProposedLimit]
    lines.push(`  ${name}:`)
    if (paths !== undefined) lines.push(`    match: { paths: ${JSON.stringify([paths])} }`)
    if (counts === 'networks') {
      const { ipv4Prefix, ipv6Prefix } = NETWORK_KEY.ip
      lines.push(`    key: { ip: { ipv4Prefix: ${ipv4Prefix}, ipv6Prefix: ${ipv6Prefix} } }`)
    }
    lines.push('    enforce: { mode: report } # counts, and refuses no request', '    limits:')
    for (const { limit, windowMs, refused } of own) {
      const effect = refused === 0 ? 'no client of the log is above it' : `${refused} in the log above it`
      lines.push(`      - { limit: ${limit}, window: ${durationText(windowMs)} } # ${effect}`)
    }
  }
  return `${lines.join('\n')}\n`
}
