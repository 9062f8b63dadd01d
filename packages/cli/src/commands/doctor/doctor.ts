import { Deadline } from '../../redis/deadline.js'
import { NotPermitted, Unreachable } from '../../redis/redis-failure.js'
import { Server } from '../../redis/server.js'
import { addressOf } from '../../redis/target.js'
import type { Check } from './check.js'
import { clock } from './checks/clock.js'
import { connections } from './checks/connections.js'
import { eviction } from './checks/eviction.js'
import { latency } from './checks/latency.js'
import { permissions } from './checks/permissions.js'
import { persistence } from './checks/persistence.js'
import { replication } from './checks/replication.js'
import { scripts } from './checks/scripts.js'
import { version } from './checks/version.js'
import { clusterOf } from './cluster.js'
import { error, type Finding, worstOf } from './finding.js'
import { keyFindings } from './keys/findings.js'
import { type Survey, survey } from './keys/survey.js'
import type { DoctorOptions } from './options.js'
import type { DoctorReport } from './report.js'
import { sentinelOf } from './sentinel.js'
import type { Surroundings, Topology } from './topology.js'
import { visibility } from './visibility.js'

/** The checks of every server that holds keys, in the order of the report. */
const CHECKS: readonly Check[] = [
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

/** Servers of a cluster that are checked at the same time: more would delay the measurements. */
const MAX_AT_ONCE = 4

/** Checks a Redis, by commands that only read. */
export async function examine(options: DoctorOptions): Promise<DoctorReport> {
  const startedMs = Date.now()
  const deadline = new Deadline(options.timeoutMs)
  const findings: Finding[] = []
  let topology: Topology | undefined
  let entry: Server | undefined
  try {
    entry = await Server.connect(options.target, deadline)
    topology = await topologyOf(entry, { deadline, masterName: options.masterName })
    findings.push(...topology.findings, ...(await lookAtAll(topology.servers, entry, options)))
  } catch (failure) {
    findings.push(ofFailure(failure))
  } finally {
    entry?.close()
    for (const server of topology?.servers ?? []) server.close()
  }
  return {
    status: worstOf(findings),
    target: addressOf(options.target),
    ...(topology && { kind: topology.kind }),
    nodes: topology?.servers.map(({ name }) => name) ?? [],
    lookedAt: new Date(startedMs).toISOString(),
    tookMs: Date.now() - startedMs,
    findings,
  }
}

async function topologyOf(entry: Server, surroundings: Surroundings): Promise<Topology> {
  const mode = await modeOf(entry)
  if (mode === 'cluster') return clusterOf(entry, surroundings)
  if (mode === 'sentinel') return sentinelOf(entry, surroundings)
  return { kind: 'single server', servers: [entry], findings: [] }
}

async function modeOf(entry: Server): Promise<string | undefined> {
  try {
    return (await entry.info()).redis_mode
  } catch (failure) {
    if (!(failure instanceof NotPermitted)) throw failure
    return undefined
  }
}

async function lookAtAll(servers: readonly Server[], entry: Server, options: DoctorOptions): Promise<Finding[]> {
  const all = new Map<Server, Finding[]>()
  const surveys: Survey[] = []
  const waiting = [...servers]
  const lookAtNext = async () => {
    for (let server = waiting.shift(); server; server = waiting.shift()) {
      const findings: Finding[] = []
      all.set(server, findings)
      const found = await lookAt(server, options, findings)
      if (found) surveys.push(found)
    }
  }
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, lookAtNext))
  const isCluster = servers.length > 1
  const findings = servers.flatMap((server) =>
    (all.get(server) ?? []).map((finding) => (isCluster ? { ...finding, node: server.name } : finding)),
  )
  const keys = surveys.length > 0 ? keyFindings(surveys, options) : []
  return [
    ...findings,
    ...keys.map((result) => ({ check: 'keys', ...result })),
    ...visibility(new Set([entry, ...servers])),
  ]
}

/** Adds the findings about one server, as far as it gets. */
async function lookAt(server: Server, options: DoctorOptions, findings: Finding[]): Promise<Survey | undefined> {
  try {
    for (const check of CHECKS) {
      try {
        for (const result of await check.look(server, options)) findings.push({ check: check.name, ...result })
      } catch (failure) {
        if (!(failure instanceof NotPermitted)) throw failure
        server.deny(failure.command, check.name)
      }
    }
    return options.scanCalls > 0 ? await survey(server, options) : undefined
  } catch (failure) {
    findings.push(ofFailure(failure))
    return undefined
  }
}

function ofFailure(failure: unknown): Finding {
  if (failure instanceof Unreachable) return { check: 'connection', ...error(failure.message, failure.advice) }
  if (failure instanceof Error && failure.name === 'ReplyError') {
    const [start = ''] = failure.message.split(/['"`\r\n]/, 1)
    return {
      check: 'connection',
      ...error(`Redis replied ${JSON.stringify(start.trim().slice(0, 120))}.`, 'Look into the log of Redis.'),
    }
  }
  throw failure
}
