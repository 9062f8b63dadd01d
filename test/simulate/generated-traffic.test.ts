// Release: proposes from ten logs, and replays each three times.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SimulationReport } from '@sluice/simulate'
import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { byEffort } from '../support/effort.js'
import { type Traffic, trafficOf } from './generated-traffic.js'
import { filesOf } from './support.js'

/** The logs, and how many of these also with times to the second. */
const SEEDS = Array.from({ length: byEffort({ usual: 10, full: 40 }) }, (_, i) => i + 1)
const COARSE = byEffort({ usual: 2, full: 40 })

/** Proposes limits from a log, writes the document, and replays the log by it. */
async function proposed(traffic: Traffic, good: readonly string[]) {
  const files = filesOf({ 'access.log': traffic.lines, 'good.txt': good.join('\n') })
  const document = join(files['access.log'], '..', 'proposal.yaml')
  const format = traffic.format === 'combined' ? [] : ['--format', traffic.format]
  const plain = ['--json', '--identities', 'plain']
  const marked = good.length > 0 ? ['--good', files['good.txt']] : []
  const log = files['access.log']
  const proposal = await sluice(['simulate', log, ...format, ...marked, ...plain, '--write', document])
  expect(proposal.stderr).toBe('')
  expect(await sluice(['validate', document])).toMatchObject({ code: 0 })
  const replayed = await sluice(['simulate', log, ...format, ...marked, ...plain, '--document', document])
  return {
    document,
    proposed: JSON.parse(proposal.stdout) as SimulationReport,
    replayed: JSON.parse(replayed.stdout) as SimulationReport,
  }
}

function refusedIn({ refused }: SimulationReport): Set<string> {
  return new Set(refused.map(({ identity }) => identity.slice('ip='.length)))
}

test.each(SEEDS.flatMap((seed) => [{ seed, isCoarse: false }, ...(seed <= COARSE ? [{ seed, isCoarse: true }] : [])]))(
  'each abuser is named and refused by the proposal, and no good client is: $seed, coarse times $isCoarse',
  async ({ seed, isCoarse }) => {
    const traffic = trafficOf(seed, { clients: 1500, days: 2, isCoarse })
    for (const { worst, worstOrdinary } of traffic.abusers) expect(worst).toBeGreaterThanOrEqual(3 * worstOrdinary)
    const { proposed: report, replayed } = await proposed(traffic, traffic.ordinary)
    const named = new Set(report.proposal?.above.map(({ identity }) => identity.slice('ip='.length)))
    const refused = refusedIn(replayed)
    for (const { client } of traffic.abusers) {
      expect(named).toContain(client)
      expect(refused).toContain(client)
    }
    expect(traffic.ordinary.filter((client) => refused.has(client) || named.has(client))).toEqual([])
    expect(replayed.refused).toEqual(report.refused)
    expect(replayed.wouldBeRefused).toBe(report.wouldBeRefused)
    expect(report.good).toMatchObject({ seen: traffic.ordinary.length, refused: [] })
    expect(replayed.requests.refused.max).toBe(0)
  },
)

test.each(SEEDS)('with times to the second, intervals contain what exact times give: log %i', async (seed) => {
  const shape = { clients: 1200, days: 2 }
  const coarse = trafficOf(seed, { ...shape, isCoarse: true })
  const { proposed: report, document } = await proposed(coarse, coarse.ordinary)
  const exact = trafficOf(seed, shape)
  const log = filesOf({ 'access.log': exact.lines })['access.log']
  const { stdout } = await sluice(['simulate', log, '--format', exact.format, '--document', document, '--json'])
  const truth = JSON.parse(stdout) as SimulationReport
  for (const [i, { requests, clients, isBounded }] of report.policies.entries()) {
    expect(isBounded).toBe(true)
    const { refused } = truth.policies[i]?.requests ?? { refused: { min: -1 } }
    expect(refused.min).toBeGreaterThanOrEqual(requests.refused.min)
    expect(refused.min).toBeLessThanOrEqual(requests.refused.max)
    expect(truth.policies[i]?.clients.refused).toBeGreaterThanOrEqual(clients.refusedBounds?.min as number)
    expect(truth.policies[i]?.clients.refused).toBeLessThanOrEqual(clients.refusedBounds?.max as number)
  }
})

test('the example of docs/choosing-a-limit.md is what the command prints', async () => {
  const page = readFileSync(new URL('../../docs/choosing-a-limit.md', import.meta.url), 'utf8')
  const [, shown = ''] = /```text name=proposal\n(.*?)```/s.exec(page) ?? []
  const { lines, format, ordinary } = trafficOf(1)
  const files = filesOf({ 'access.log': lines, 'partners.txt': ordinary.slice(0, 40).join('\n') })
  const args = ['simulate', files['access.log'], '--format', format, '--good', files['partners.txt']]
  const { stdout } = await sluice(args)
  const trimmed = (text: string) => text.replace(/ +$/gm, '')
  expect(trimmed(stdout).slice(0, trimmed(shown).length)).toBe(trimmed(shown))
  expect(shown).toContain('of limit')
})

test('without good clients the limits are a guess, and each abuser is named and refused', async () => {
  const traffic = trafficOf(1)
  const { proposed: report, replayed } = await proposed(traffic, [])
  expect(report.proposal).toMatchObject({ basis: 'guess', clients: traffic.ordinary.length + 52 })
  for (const { client } of traffic.abusers) expect(refusedIn(replayed)).toContain(client)
  const hurt = traffic.ordinary.filter((client) => refusedIn(replayed).has(client))
  expect(hurt.length).toBeLessThanOrEqual(traffic.ordinary.length / 1000)
})
