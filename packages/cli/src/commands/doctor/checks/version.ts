import { infoCheck } from '../check.js'
import { error, ok, warning } from '../finding.js'

const LEAST = [6, 2] as const

/** Whether Redis is new enough, with its name and version. */
export const version = infoCheck('version', (info) => {
  const { redis_version: number = '', valkey_version: valkey, server_name: server } = info
  const name = server === 'valkey' ? `Valkey ${valkey} (as Redis ${number})` : `Redis ${number}`
  const data = { version: number, ...(valkey && { valkeyVersion: valkey }) }
  if (!/^\d+\.\d+/.test(number)) {
    return [warning('The server reports no version of Redis.', 'Check that it is Redis 6.2 or later, or Valkey.', data)]
  }
  if (!isAtLeast(number, LEAST)) {
    return [
      error(`${name} is older than 6.2, which Sluice needs.`, 'Upgrade Redis to a version that is maintained.', data),
    ]
  }
  return [ok(`${name}.`, data)]
})

export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ours = 0, oursMinor = 0] = version.split('.').map(Number)
  return ours > major || (ours === major && oursMinor >= minor)
}
