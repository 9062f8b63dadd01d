import { counted, listed } from '@sluice/core/internal'
import { UsageError } from '../../program/usage-error.js'
import { Unreachable } from '../../redis/redis-failure.js'
import { Server } from '../../redis/server.js'
import { nodeName } from '../../redis/target.js'
import { type CheckResult, error, type Finding, ok, warning } from './finding.js'
import type { Surroundings, Topology } from './topology.js'

/** With fewer Sentinels, the loss of one leaves no majority. */
const FEWEST_SENTINELS = 3

type Fields = Readonly<Record<string, string | undefined>>

/** The master that a Sentinel watches, and whether a failover would work. */
export async function sentinelOf(entry: Server, { deadline, masterName }: Surroundings): Promise<Topology> {
  const watched = ((await entry.call('SENTINEL', 'MASTERS')) as string[][]).map(pairs)
  const master = chosen(watched, masterName)
  if (!master) return { kind: 'Sentinel', servers: [], findings: [notWatched(watched, masterName)] }

  const results = await ofMaster(master, entry)
  const host = master.ip ?? ''
  const port = Number(master.port)
  const findings: Finding[] = results.map((each) => ({ check: 'sentinel', ...each }))
  try {
    const server = await Server.connect({ ...entry.target, host, port }, deadline)
    return { kind: 'Sentinel', servers: [server], findings }
  } catch (failure) {
    if (!(failure instanceof Unreachable)) throw failure
    const unreachable = error(
      `${failure.message} Sentinel names it as the master of ${show(master.name)}.`,
      failure.advice,
    )
    return {
      kind: 'Sentinel',
      servers: [],
      findings: [...findings, { check: 'sentinel', node: nodeName(host, port), ...unreachable }],
    }
  }
}

function chosen(watched: readonly Fields[], masterName: string | undefined): Fields | undefined {
  if (masterName !== undefined) return watched.find(({ name }) => name === masterName)
  if (watched.length < 2) return watched[0]
  const names = watched.map(({ name }) => show(name))
  throw new UsageError(`Sentinel watches ${listed(names)}: say which one by --master-name NAME`)
}

function notWatched(watched: readonly Fields[], masterName: string | undefined): Finding {
  const names = watched.map(({ name }) => show(name))
  const what = masterName === undefined ? 'no master' : `no master named ${show(masterName)}`
  const instead = names.length > 0 ? `, but ${listed(names)}` : ''
  return {
    check: 'sentinel',
    ...error(`Sentinel watches ${what}${instead}.`, 'Check --master-name against sentinel monitor in sentinel.conf.'),
  }
}

async function ofMaster(master: Fields, entry: Server): Promise<CheckResult[]> {
  const flags = (master.flags ?? '').split(',')
  const replicas = Number(master['num-slaves'] ?? 0)
  const sentinels = Number(master['num-other-sentinels'] ?? 0) + 1
  const data = { masterName: master.name, flags, replicas, sentinels, quorum: Number(master.quorum) }
  const results: CheckResult[] = []
  if (flags.includes('o_down') || flags.includes('s_down')) {
    results.push(
      error(
        `Sentinel takes the master of ${show(master.name)} for down (${flags.filter((flag) => flag.endsWith('_down')).join(', ')}).`,
        'Look for why it is away; SENTINEL CKQUORUM shows whether the Sentinels can promote a replica.',
        data,
      ),
    )
  }
  const quorum = await quorumProblem(entry, master.name ?? '')
  if (quorum !== undefined) {
    results.push(
      error(
        `The Sentinels of ${show(master.name)} cannot agree on a failover: ${quorum}.`,
        'Start the Sentinels that are missing, and check that they reach each other.',
        data,
      ),
    )
  }
  if (replicas === 0 || sentinels < FEWEST_SENTINELS) {
    results.push(
      warning(
        `${show(master.name)} has ${counted(replicas, 'replica')} and ${counted(sentinels, 'Sentinel')}: too few for a failover.`,
        'Run a replica at least, and three Sentinels on different machines.',
        data,
      ),
    )
  }
  if (await isUnheard(entry)) {
    results.push(
      warning(
        'No client listens to this Sentinel: after a failover by command, stores count on the demoted master for some 10 s, ' +
          'and these counts are lost.',
        'Give the ioredis clients of your stores failoverDetector: true.',
        data,
      ),
    )
  }
  const figures = `${counted(replicas, 'replica')}, ${counted(sentinels, 'Sentinel')}`
  return results.length > 0 ? results : [ok(`Sentinel knows the master of ${show(master.name)}: ${figures}.`, data)]
}

/** Whether no client subscribes to the failovers that a Sentinel announces. */
async function isUnheard(entry: Server): Promise<boolean> {
  const clients = await entry.tryCall('listeners of Sentinel', 'CLIENT', 'LIST')
  return typeof clients === 'string' && !/ p?sub=[1-9]/.test(clients)
}

/** The reply of Sentinel if there is no quorum or majority. */
async function quorumProblem(entry: Server, name: string): Promise<string | undefined> {
  try {
    await entry.tryCall('quorum of Sentinel', 'SENTINEL', 'CKQUORUM', name)
    return undefined
  } catch (failure) {
    const [, text] = /^NOQUORUM (.*?)\.?$/.exec(failure instanceof Error ? failure.message : '') ?? []
    if (text === undefined) throw failure
    return text
  }
}

function pairs(flat: readonly string[]): Fields {
  const fields: Record<string, string> = Object.create(null)
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string
  return fields
}

function show(name: string | undefined): string {
  return JSON.stringify(name ?? '')
}
