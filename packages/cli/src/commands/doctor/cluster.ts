import { counted, grouped } from '@sluice/core/internal'
import { NotPermitted, Unreachable } from '../../redis/redis-failure.js'
import { fieldsOf, Server } from '../../redis/server.js'
import { nodeName } from '../../redis/target.js'
import { type CheckResult, error, type Finding, ok, warning } from './finding.js'
import type { Surroundings, Topology } from './topology.js'

const SLOTS = 16_384
const MAX_AT_ONCE = 8

interface Master {
  readonly host: string
  readonly port: number
  readonly replicas: number
}

/** The masters of a cluster, reached from one of its nodes, and whether together they serve every slot. */
export async function clusterOf(entry: Server, { deadline }: Surroundings): Promise<Topology> {
  const results: CheckResult[] = []
  let masters: readonly Master[] = []
  try {
    const ranges = (await entry.call('CLUSTER', 'SLOTS')) as [number, number, ...[string, number][]][]
    masters = mastersIn(ranges, entry)
    results.push(...(await ofSlots(ranges, masters, entry)))
  } catch (failure) {
    if (!(failure instanceof NotPermitted)) throw failure
    results.push(
      error(
        'CLUSTER SLOTS is not permitted, by which clients find the masters.',
        `Grant it: ACL SETUSER ${entry.user} +cluster|slots +cluster|info`,
      ),
    )
  }
  const { servers, findings } = await connectAll(masters, entry, deadline)
  const all: Finding[] = [...results.map((each) => ({ check: 'cluster', ...each })), ...findings]
  return { kind: 'Cluster', servers, findings: all }
}

function mastersIn(ranges: readonly [number, number, ...[string, number][]][], entry: Server): Master[] {
  const masters = new Map<string, Master>()
  for (const [, , master, ...replicas] of ranges) {
    if (!master) continue
    const [announced, port] = master
    // A node that does not know its own address is reached at the address of the entry.
    const host = announced === '' || announced === '?' || announced === null ? entry.target.host : announced
    masters.set(nodeName(host, port), { host, port, replicas: replicas.length })
  }
  return [...masters.values()]
}

async function ofSlots(
  ranges: readonly [number, number, ...unknown[]][],
  masters: readonly Master[],
  entry: Server,
): Promise<CheckResult[]> {
  const holes = holesBetween(ranges)
  const missing = holes.reduce((total, [from, to]) => total + to - from + 1, 0)
  const info = fieldsOf(String((await entry.tryCall('cluster', 'CLUSTER', 'INFO')) ?? ''))
  const state = info.cluster_state
  const failing = Number(info.cluster_slots_fail ?? 0)
  const suspected = Number(info.cluster_slots_pfail ?? 0)
  const alone = masters.filter(({ replicas }) => replicas === 0).length
  const all = masters.length
  const data = {
    masters: all,
    mastersWithoutReplica: alone,
    state,
    slotsMissing: missing,
    slotsFailing: failing,
  }
  const results: CheckResult[] = []
  if (missing > 0) {
    const shown = holes.slice(0, 5).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
    results.push(
      error(
        `${counted(missing, 'slot')} of ${grouped(SLOTS)} ${missing === 1 ? 'is' : 'are'} served by no master (${shown.join(', ')}${holes.length > 5 ? ', …' : ''}): their keys cannot be decided.`,
        'Run redis-cli --cluster fix, or assign the slots by CLUSTER ADDSLOTS.',
        data,
      ),
    )
  }
  if (failing > 0 || suspected > 0) {
    results.push(
      error(
        `${counted(failing + suspected, 'slot')} of ${grouped(SLOTS)} belong to a master that the others do not reach.`,
        'CLUSTER NODES shows which one failed: start it again, or promote its replica by CLUSTER FAILOVER TAKEOVER.',
        data,
      ),
    )
  } else if (state === 'fail' && missing === 0) {
    results.push(
      error(
        'The cluster says that it is down (cluster_state:fail), though every slot has a master.',
        'CLUSTER NODES shows what this node thinks of the others: mostly it does not reach most of the masters.',
        data,
      ),
    )
  }
  if (results.length === 0) {
    results.push(ok(`All ${grouped(SLOTS)} slots are served, by ${counted(all, 'master')}.`, data))
  }
  if (alone > 0)
    results.push(warning(aloneText(alone, all), 'Add replicas: redis-cli --cluster add-node … --cluster-slave.', data))
  return results
}

function aloneText(alone: number, all: number): string {
  const these = alone === all ? 'No master has a replica' : `${alone} of ${all} masters have no replica`
  return `${these}: what such a one holds is away for as long as it is.`
}

/** Ranges of slots that no master has, ends included. */
function holesBetween(ranges: readonly [number, number, ...unknown[]][]): [number, number][] {
  const holes: [number, number][] = []
  let next = 0
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from > next) holes.push([next, from - 1])
    next = Math.max(next, to + 1)
  }
  if (next < SLOTS) holes.push([next, SLOTS - 1])
  return holes
}

async function connectAll(
  masters: readonly Master[],
  entry: Server,
  deadline: Surroundings['deadline'],
): Promise<{ servers: Server[]; findings: Finding[] }> {
  const servers: Server[] = []
  const findings: Finding[] = []
  const waiting = [...masters]
  const connectNext = async () => {
    for (let master = waiting.shift(); master; master = waiting.shift()) {
      const { host, port } = master
      try {
        servers.push(await Server.connect({ ...entry.target, host, port }, deadline))
      } catch (failure) {
        if (!(failure instanceof Unreachable)) throw failure
        findings.push({
          check: 'cluster',
          node: nodeName(host, port),
          ...error(
            `${failure.message} The cluster names it as a master, so its part of the keys cannot be decided from here.`,
            `${failure.advice} Where the address is one of an inner network, set cluster-announce-ip and cluster-announce-port.`,
          ),
        })
      }
    }
  }
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, connectNext))
  servers.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { servers, findings }
}
