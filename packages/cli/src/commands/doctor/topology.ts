import type { Deadline } from '../../redis/deadline.js'
import type { Server } from '../../redis/server.js'
import type { Finding } from './finding.js'

/** The servers that hold keys, and the findings about their topology. */
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
