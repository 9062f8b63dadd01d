import { basename } from 'node:path'
import { counted, grouped, listed, percent } from '@sluice/core/internal'
import type { ClientCounts, Counts, Interval, SimulationReport } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { figures } from '../table.js'
import { intervalText, intervalWords, rangeText, spanText, timeText } from '../words.js'
import { namedClients } from './clients.js'

/** The result in two sentences, then its figures. */
export function overview(report: SimulationReport): Markup {
  const { requests, clients, refused } = report
  const most = refused.map(
    ({ identity, policy, requests, refused }) =>
      markup`<code>${identity}</code>, ${grouped(refused)} of ${counted(requests, 'request')} by ${policy}`,
  )
  return markup`<p class="lead">${resultText(report)} ${spanOfLog(report)}</p>
${namedClients('Refused most', most, 'refused')}${figures([...countsEntries(requests), ...clientsEntries(clients), ...logEntries(report)])}${unreadExamples(report)}`
}

/** The log that limits are proposed for. */
export function logSection(report: SimulationReport): Markup {
  const { requests, clients } = report
  return markup`<section aria-labelledby="log"><h2 id="log">Log</h2>
<p>${spanOfLog(report)}</p>
${figures([['Requests', grouped(requests.total)], ['Clients', grouped(clients.seen)], ...logEntries(report)])}${unreadExamples(report)}</section>
`
}

function logEntries({ log }: SimulationReport): (readonly [string, string])[] {
  return [
    ['Lines read', grouped(log.lines)],
    ['Lines not understood', grouped(log.unread.count)],
    ['Lines too late to sort', grouped(log.late)],
    ['Format', listed([...new Set(log.formats)])],
    ['Resolution of times', spanText(log.resolutionMs)],
  ]
}

/** The figures of requests, without those that never happened. */
export function countsEntries(counts: Counts): (readonly [string, string])[] {
  const { total, admitted, refused, banned, delayed } = counts
  return [
    ['Requests', grouped(total)],
    ['Admitted', intervalText(admitted)],
    ['Refused', `${intervalText(refused)} (${shareText(counts)})`],
    ...(banned.max > 0 ? [['Refused by a ban or block', intervalText(banned)] as const] : []),
    ...(delayed.max > 0 ? [['Delayed', intervalText(delayed)] as const] : []),
  ]
}

/** The figures of clients. */
export function clientsEntries(clients: ClientCounts): (readonly [string, string])[] {
  const refused = refusedOf(clients)
  const shares = { min: shareOf(refused.min, clients.seen), max: shareOf(refused.max, clients.seen) }
  return [
    ['Clients', grouped(clients.seen)],
    ['Clients ever refused', `${intervalText(refused)} (${rangeText(shares, percent)})`],
  ]
}

/** Within their bounds, where these are known. */
function refusedOf({ refused, refusedBounds = { min: refused, max: refused } }: ClientCounts): Interval {
  return refusedBounds
}

function shareText({ refused, total }: Counts): string {
  return rangeText({ min: shareOf(refused.min, total), max: shareOf(refused.max, total) }, percent)
}

export function shareOf(part: number, all: number): number {
  return all > 0 ? part / all : 0
}

function resultText({ requests, clients }: SimulationReport): string {
  const { refused, total } = requests
  if (total === 0) return 'The logs have no requests.'
  return `The policies would refuse ${intervalWords(refused)} of ${counted(total, 'request')} (${shareText(requests)}), and ${intervalWords(refusedOf(clients))} of ${counted(clients.seen, 'client')} at least once.`
}

function spanOfLog({ log, requests }: SimulationReport): string {
  const partial = log.isPartial ? 'Reading ended before the logs did: the result is of the first part.' : ''
  if (requests.total === 0) return partial
  const files = listed(log.files.map((file) => basename(file)))
  return `The log (${files}) lasts ${spanText(Math.max(0, log.lastMs - log.firstMs))}, from ${timeText(log.firstMs)} to ${timeText(log.lastMs)} UTC. ${partial}`
}

function unreadExamples({ log }: SimulationReport): Markup | undefined {
  const { examples } = log.unread
  if (examples.length === 0) return undefined
  return markup`<details><summary>Lines that were not understood</summary>
<ul>${examples.map((line) => markup`<li><code>${line}</code></li>`)}</ul></details>
`
}
