import {
  bytes,
  counted,
  durationText,
  grouped,
  inLine,
  instantText,
  listed,
  ms,
  percent,
  tableOf,
} from '@sluice/core/internal'
import type {
  ClientCounts,
  Comparison,
  Interval,
  LimitReport,
  PolicyReport,
  RedisCost,
  RefusedClient,
  SimulationReport,
} from '../report.js'
import { rangeText, spanText } from './html/words.js'
import { documentText, proposalText, type WithProposal } from './proposal-text.js'

/** Clients in the tables for people. */
const SHOWN = 20
/** Characters of the timeline. */
const WIDTH = 60
const BARS = ' ▁▂▃▄▅▆▇█'

/** The report for people. Names of clients are in it as they are: whoever prints it escapes what a terminal obeys. */
export function textOf(report: SimulationReport): string {
  const { proposal } = report
  return proposal ? textWithProposal({ ...report, proposal }) : textOfReplay(report)
}

function textWithProposal(report: WithProposal): string {
  const parts = [proposalText(report), logText(report), redisText(report.redis), caveatsText(report)]
  return `${parts.filter((part) => part !== '').join('\n')}\nThe document\n${documentText(report.proposal)}`
}

function textOfReplay(report: SimulationReport): string {
  const { requests, clients, policies, refused, good, against } = report
  const parts = [
    logText(report),
    `${counted(requests.total, 'request')} of ${counted(clients.seen, 'client')}: ` +
      `${share(requests.refused, requests.total)} refused, of ${refusedClients(clients)}` +
      `${isSome(requests.banned) ? `; ${share(requests.banned, requests.total)} by bans` : ''}` +
      `${isSome(requests.delayed) ? `; ${share(requests.delayed, requests.total)} delayed` : ''}.\n`,
    ...policies.map(policyText),
    timelineText(report),
    refused.length === 0 ? 'No client would be refused.\n' : `Refused clients\n${clientTable(refused)}`,
    ...(good ? [goodText(good)] : []),
    ...(against ? [comparisonText(against)] : []),
    redisText(report.redis),
    caveatsText(report),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

function caveatsText({ caveats }: SimulationReport): string {
  return caveats.map((caveat) => `! ${inLine(caveat)}\n`).join('')
}

function logText({ log }: SimulationReport): string {
  const { files, formats, lines, unread, late, firstMs, lastMs, isPartial } = log
  const names = files.map((file) => inLine(file === '-' ? 'standard input' : file))
  const bad = [
    ...(unread.count > 0 ? [`${grouped(unread.count)} not understood`] : []),
    ...(late > 0 ? [`${grouped(late)} too late to be sorted`] : []),
  ]
  const examples = unread.examples.map((example) => `  not understood: ${inLine(example)}\n`)
  return (
    `${listed(names)}: ${counted(lines, 'line')} of ${listed([...new Set(formats)])}` +
    `${bad.length > 0 ? ` (${bad.join(', ')})` : ''}, ${instantText(firstMs)} to ${instantText(lastMs)}` +
    `${isPartial ? '; not read to the end' : ''}\n${examples.join('')}`
  )
}

function policyText({ name, mode, requests, clients, limits, bans, waits }: PolicyReport): string {
  const lines = [
    `${inLine(name)}${mode === 'report' ? ' (reports only)' : ''}: ${counted(requests.total, 'request')} of ` +
      `${counted(clients.seen, 'client')}, ${share(requests.refused, requests.total)} refused, of ` +
      `${refusedClients(clients)}`,
    ...limits.map((limit) => `  ${limitText(limit)}`),
  ]
  if (bans) {
    const longest = bans.begun > 0 ? `, the longest for ${durationText(Math.round(bans.longestMs))}` : ''
    lines.push(`  ${counted(bans.begun, 'ban')} would have begun${longest}`)
  }
  if (waits) {
    lines.push(
      `  ${counted(waits.count, 'request')} wait: half at most ${ms(waits.p50)}, 99 % ${ms(waits.p99)}, all ${ms(waits.max)}`,
    )
  }
  return `${lines.join('\n')}\n`
}

function limitText(report: LimitReport): string {
  const { name, algorithm, limit, windowMs, calendar, unit, refused, headroom, headroomBounds, tradeOff } = report
  const per = algorithm === 'concurrency' ? 'at a time' : `per ${calendar ?? durationText(windowMs)}`
  const parts = [`${inLine(name)}: ${unitsText(limit, unit)} ${per} (${algorithm})`, `no room ${range(refused)} times`]
  if (headroom !== undefined) {
    const [min, max] = [headroomBounds?.min ?? headroom, headroomBounds?.max ?? headroom].map(
      (times) => `${times.toFixed(2)}×`,
    )
    parts.push(`headroom ${min === max ? min : `${min} to ${max}`}`)
  }
  if (tradeOff?.suggested !== undefined) {
    const by = tradeOff.sample < 1 ? ` (estimated by ${percent(tradeOff.sample)} of them)` : ''
    parts.push(`from ${grouped(tradeOff.suggested)} on, fewer than 0.1 % of the clients are refused${by}`)
  }
  return parts.join('; ')
}

function unitsText(limit: number, unit: string): string {
  return unit === 'requests' ? counted(limit, 'request') : `${grouped(limit)} ${unit}`
}

function timelineText({ timeline }: SimulationReport): string {
  const { admitted, refused, stepMs, fromMs, peaks } = timeline
  if (admitted.length === 0) return ''
  const row = (counts: readonly number[]) => bars(counts)
  const steps = Math.ceil(admitted.length / WIDTH)
  const named = peaks
    .slice(0, 3)
    .map(({ atMs, requests, refused }) => `${instantText(atMs)} ${grouped(requests)} (${grouped(refused)} refused)`)
  return [
    `Timeline from ${instantText(fromMs)}, ${durationText(steps * stepMs)} a character`,
    `  admitted ${row(admitted)}`,
    `  refused  ${row(refused)}`,
    `  busiest ${durationText(stepMs)}: ${named.join(', ')}`,
    '',
  ].join('\n')
}

/** Bars of sums, at most `WIDTH`. */
function bars(counts: readonly number[]): string {
  const perBar = Math.ceil(counts.length / WIDTH)
  const sums: number[] = []
  for (const [i, count] of counts.entries()) {
    const at = Math.floor(i / perBar)
    sums[at] = (sums[at] ?? 0) + count
  }
  const most = Math.max(1, ...sums)
  return sums.map((sum) => BARS[Math.ceil((sum / most) * (BARS.length - 1))]).join('')
}

function clientTable(clients: readonly RefusedClient[]): string {
  const rows = clients
    .slice(0, SHOWN)
    .map(({ identity, policy, requests, refused, firstMs, statuses, paths, agent, isGood }) => [
      `${isGood ? '* ' : ''}${identity}`,
      policy,
      `${grouped(refused)} of ${grouped(requests)}`,
      instantText(firstMs),
      Object.entries(statuses)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 3)
        .map(([status, count]) => `${status}×${count}`)
        .join(' '),
      shortened(paths[0] ?? '', 40),
      shortened(agent ?? '', 40),
    ])
  const more = clients.length > SHOWN ? `and ${grouped(clients.length - SHOWN)} more\n` : ''
  return tableOf(['client', 'policy', 'refused', 'first', 'statuses', 'path', 'agent'], rows) + more
}

function goodText({ seen, refused, absent }: NonNullable<SimulationReport['good']>): string {
  const missing = absent.length === 0 ? '' : `Good, but not in the log: ${absent.map(inLine).join(', ')}\n`
  if (seen === 0) return `No good client is in the log, so that this shows nothing about them.\n${missing}`
  if (refused.length === 0) return `Of ${counted(seen, 'good client')}, none would be refused.\n${missing}`
  return `${counted(refused.length, 'good client')} of ${grouped(seen)} would be refused\n${clientTable(refused)}${missing}`
}

function comparisonText({ newlyRefused, noLongerRefused, requestsRefused }: Comparison): string {
  const sign = requestsRefused < 0 ? '−' : '+'
  const parts = [
    `The change: +${counted(newlyRefused.length, 'client')} refused, −${grouped(noLongerRefused.length)}; ` +
      `${sign}${percent(Math.abs(requestsRefused))} of the requests`,
  ]
  if (newlyRefused.length > 0) parts.push(`refused by the new document\n${clientTable(newlyRefused)}`.trimEnd())
  if (noLongerRefused.length > 0) parts.push(`refused by the old one alone\n${clientTable(noLongerRefused)}`.trimEnd())
  return `${parts.join('\n')}\n`
}

function redisText({ commands, cpuMs, bytes: size, hot }: RedisCost): string {
  const figures = [
    `at most ${counted(commands, 'command')}`,
    cpuMs ? `${rangeText(cpuMs, spanText)} of CPU` : 'CPU not measured for such policies',
    size ? `${rangeText(size, bytes)} of memory` : 'memory not measured for such policies',
  ]
  const busy = hot
    .slice(0, SHOWN)
    .map(
      ({ identity, perSecond }) => `  worth a lease: ${inLine(identity)}, ${grouped(Math.round(perSecond))} a second\n`,
    )
  return `In Redis: ${figures.join(', ')}\n${busy.join('')}`
}

function refusedClients({ refused, refusedBounds }: ClientCounts): string {
  if (!refusedBounds || refusedBounds.min === refusedBounds.max) return counted(refused, 'client')
  return `${range(refusedBounds)} clients`
}

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

function range({ min, max }: Interval): string {
  return min === max ? grouped(min) : `${grouped(min)} to ${grouped(max)}`
}

function share(interval: Interval, total: number): string {
  if (interval.max === 0) return 'none'
  return `${range(interval)} (${rangeText(interval, (number) => percent(number / Math.max(1, total)))})`
}

function isSome({ max }: Interval): boolean {
  return max > 0
}
