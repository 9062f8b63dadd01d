import type { Check } from '../check.js'
import { clock } from './clock.js'
import { connections } from './connections.js'
import { eviction } from './eviction.js'
import { latency } from './latency.js'
import { permissions } from './permissions.js'
import { persistence } from './persistence.js'
import { replication } from './replication.js'
import { scripts } from './scripts.js'
import { version } from './version.js'

/** What is looked at on every server that keeps keys, in the order of the report. */
export const CHECKS: readonly Check[] = [
  version,
  replication,
  permissions,
  eviction,
  persistence,
  connections,
  scripts,
  clock,
  latency,
]
