import type { Deadline } from '../../redis/deadline.js'
import type { Server } from '../../redis/server.js'
import type { Finding } from './finding.js'

/** The servers that keep keys, and what was found about how they belong together. */
export interface Topology {
  readonly kind: 'single server' | 'Cluster' | 'Sentinel'
  /** Connected; the caller closes them. */
  readonly servers: readonly Server[]
  readonly findings: readonly Finding[]
}

export interface Surroundings {
  readonly deadline: Deadline
  readonly masterName: string | undefined
}
