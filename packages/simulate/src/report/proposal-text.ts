import { counted, durationText, grouped, inLine, percent, tableOf } from '@sluice/core/internal'
import { yamlOf } from '../proposal/document.js'
import type { ClientAtLimit, Proposal, ProposedLimit } from '../proposal/proposal.js'
import type { SimulationReport } from '../report.js'

/** Clients in the tables for people. */
const SHOWN = 20

/** A report with a proposal. */
export type WithProposal = SimulationReport & { readonly proposal: Proposal }

/** The result in a sentence: the limit that matters most, and who would be refused. */
export function resultOf({ proposal, requests, wouldBeRefused, clients }: WithProposal): string {
  const main = mainLimit(proposal)
  const more = proposal.limits.length - 1
  const refused = refusedText(proposal, clients.seen)
  const share = percent(wouldBeRefused / Math.max(1, requests.total))
  return (
    `Limit ${limitText(main)}${more > 0 ? `, with ${counted(more, 'limit')} more` : ''}: ` +
    (wouldBeRefused === 0
      ? 'no client of the log would be refused.'
      : `enforced, that refuses ${grouped(wouldBeRefused)} of ${counted(requests.total, 'request')} (${share}), of ${refused}.`)
  )
}

/** What the limits follow from. */
export function basisOf({ basis, clients }: Proposal): string {
  return basis === 'guess'
    ? `The limits are a guess: 1.5 times what 99.9 % of ${counted(clients, 'client')} need. Run it again with --good and the clients that must not be refused.`
    : `The limits are the most that ${counted(clients, 'good client')} of the log need, those that --good names. They refuse none of these, and leave the busiest of them no room.`
}

/** The limit of the sentence: of all paths and each client, the one that most are above; a minute's, where none is. */
export function mainLimit({ limits }: Proposal): ProposedLimit {
  const ofAll = limits.filter(({ paths, counts }) => paths === undefined && counts === 'clients')
  const [main] = [...(ofAll.length > 0 ? ofAll : limits)].sort(
    (a, b) => b.refused - a.refused || Math.abs(a.windowMs - MINUTE_MS) - Math.abs(b.windowMs - MINUTE_MS),
  )
  return main as ProposedLimit
}

const MINUTE_MS = 60_000

/** `each client to 20 requests per minute on /login/**`. */
export function limitText({ counts, limit, windowMs, paths }: ProposedLimit): string {
  const who = counts === 'clients' ? 'each client' : 'each network, a /24 or an IPv6 /48,'
  const where = paths === undefined ? '' : ` on ${inLine(paths)}`
  return `${who} to ${counted(limit, 'request')} per ${windowName(windowMs)}${where}`
}

const NAMES = new Map([
  [1000, 'second'],
  [MINUTE_MS, 'minute'],
  [3_600_000, 'hour'],
  [86_400_000, 'day'],
])

/** `minute`, for a sentence. */
export function windowName(ms: number): string {
  return NAMES.get(ms) ?? durationText(ms)
}

/** ` (50 clients)` for a network, nothing for a client. */
export function networkNote({ clients }: ClientAtLimit): string {
  return clients === undefined ? '' : ` (${counted(clients, 'client')})`
}

/** `17 of 40 clients`, or `up to 52 of 3,052 clients: 2 above a limit of their own, the others in 2 networks above one`. */
function refusedText({ above, touched }: Proposal, seen: number): string {
  const networks = above.filter(({ counts }) => counts === 'networks').length
  const all = `${grouped(touched)} of ${counted(seen, 'client')}`
  if (networks === 0) return all
  const own = above.length - networks
  const within = `in ${counted(networks, 'network')} above one`
  return own === 0
    ? `up to ${all} ${within}`
    : `up to ${all}: ${grouped(own)} above a limit of their own, the others ${within}`
}

/** The proposal for people, and its document. */
export function proposalText(report: WithProposal): string {
  const { proposal } = report
  return [
    `${resultOf(report)}\n`,
    `${basisOf(proposal)}\n`,
    limitsTable(proposal),
    proposal.above.length === 0
      ? 'No client is above a limit.\n'
      : `Clients above a limit\n${aboveTable(report, proposal.above)}${deniedText(proposal)}`,
    proposal.below.length === 0 ? '' : `Closest to a limit, and below it\n${closestTable(proposal.below)}`,
  ]
    .filter((part) => part !== '')
    .join('\n')
}

/** The document at the end, where it is not written to a file. */
export function documentText(proposal: Proposal, heading: readonly string[] = headingOf(proposal)): string {
  return yamlOf(proposal.limits, heading)
}

function headingOf(proposal: Proposal): readonly string[] {
  return [
    'Proposed by sluice simulate. In report mode, the policies count and refuse no request.',
    basisOf(proposal),
    'To enforce a policy, remove its line "enforce".',
  ]
}

/** Every window of all paths, and of other groups those in the document. */
function limitsTable({ groups }: Proposal): string {
  const rows = groups.flatMap(({ windows }) =>
    windows
      .filter(({ paths, limit, isProposed }) => isProposed || (paths === undefined && limit !== undefined))
      .map(({ paths, counts, windowMs, median, p999, max, good, limit, refused, isProposed }) => [
        isProposed ? '*' : '',
        paths === undefined ? 'all' : inLine(paths),
        counts,
        durationText(windowMs),
        grouped(median),
        grouped(p999),
        grouped(max),
        good === undefined ? '–' : grouped(good),
        grouped(limit as number),
        grouped(refused),
      ]),
  )
  const heading = ['', 'paths', 'of', 'in', 'half', '99.9 %', 'most', 'good', 'limit', 'above']
  return (
    `Requests of clients in their worst windows: * is in the document, and the others refuse no further client\n` +
    tableOf(heading, rows)
  )
}

function aboveTable({ refused }: SimulationReport, above: readonly ClientAtLimit[]): string {
  const rows = above.slice(0, SHOWN).map((client) => {
    const found = refused.find(({ identity, policy }) => identity === client.identity && policy === client.policy)
    return [
      `${client.identity}${networkNote(client)}`,
      whereText(client),
      `${(client.worst / client.limit).toFixed(1)}×`,
      found ? `${grouped(found.refused)} of ${grouped(found.requests)}` : 'none',
      found?.paths[0] ?? '',
      found?.agent ?? '',
    ]
  })
  const more = above.length > SHOWN ? `and ${grouped(above.length - SHOWN)} more\n` : ''
  return tableOf(['client', 'worst window', 'of limit', 'refused', 'path', 'agent'], rows) + more
}

function closestTable(below: readonly ClientAtLimit[]): string {
  const rows = below
    .slice(0, 5)
    .map((client) => [
      `${client.isGood ? '* ' : ''}${client.identity}${networkNote(client)}`,
      whereText(client),
      percent(client.worst / client.limit),
    ])
  return tableOf(['client', 'worst window', 'of limit'], rows)
}

/** `511 in 1d, limit 231, on /login/**`. */
function whereText({ worst, windowMs, limit, paths }: ClientAtLimit): string {
  return `${grouped(worst)} in ${durationText(windowMs)}, limit ${grouped(limit)}${paths === undefined ? '' : `, on ${inLine(paths)}`}`
}

/** Networks that a log names can be denied in place of limits. */
function deniedText({ above }: Proposal): string {
  const networks = above
    .filter(({ counts }) => counts === 'networks')
    .map(({ identity }) => identity.slice('ip='.length))
    // Neither the HMACs of recordings nor pseudonyms.
    .filter((network) => network.includes('/'))
  if (networks.length === 0) return ''
  return `A network can be denied in place of a limit: deny: { ip: [${networks.slice(0, SHOWN).join(', ')}] }\n`
}
