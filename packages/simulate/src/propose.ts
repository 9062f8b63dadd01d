import { counted, durationText, isPrivateAddress, percent, quoted } from '@sluice/core/internal'
import { type CountedWindow, choose, FEWEST_CLIENTS } from './proposal/choose.js'
import { documentOf } from './proposal/document.js'
import type { Proposal } from './proposal/proposal.js'
import { Traffic } from './proposal/traffic.js'
import type { LogRecord } from './record.js'
import { checkAddresses } from './replay/check-addresses.js'
import { type GoodClients, goodClients } from './replay/good.js'
import { LogTime } from './replay/log-time.js'
import { readingOf, resolversOf } from './replay/reading.js'
import { type Reading, RecordContext } from './replay/record-context.js'
import { spanOf } from './replay/time-span.js'
import { withIdentities, withPseudonyms } from './report/pseudonyms.js'
import type { SimulationReport } from './report.js'
import { clientFieldIn, countsOf, logsOf, replay, resolutionOf, type SimulateOptions } from './simulate.js'
import { SimulationError } from './simulation-error.js'

/** As for `simulate`, without a document. */
export type ProposeOptions = Omit<SimulateOptions, 'document' | 'against' | 'curve'>

/** A report of what the proposed document would refuse. */
export interface ProposalReport extends SimulationReport {
  readonly proposal: Proposal
}

const SECOND_MS = 1000
const WINDOWS_MS = [SECOND_MS, 60 * SECOND_MS, 3600 * SECOND_MS, 86_400 * SECOND_MS]
/** A log that is shorter shows no habits. */
const SHORTEST_MS = 60 * SECOND_MS

/**
 * Proposes limits from access logs alone, then replays the logs by them. Reads the logs twice, so that they must be files. It keeps
 * this thread busy.
 *
 * @throws SimulationError for options and logs that are wrong, and for logs that say too little, with what is needed
 */
export async function propose(options: ProposeOptions): Promise<ProposalReport> {
  const { logs, good = [], resolvers: given = {} } = options
  if (logs.some((log) => typeof log !== 'string' || log === '-')) {
    throw new SimulationError(
      'a proposal reads logs twice: expected files, got standard input or lines. Write them to a file first',
    )
  }
  const reading = readingOf(options, given.keys?.user !== undefined)
  const marked = goodClients(good, resolversOf(given, reading))
  let read = await trafficOf(options, reading, marked, 1)
  // Times that are coarser than the first ones were.
  if (read.resolutionMs > read.countedFor) read = await trafficOf(options, reading, marked, read.resolutionMs)
  const { traffic } = read
  if (options.signal?.aborted) throw new SimulationError('no limit can be proposed: reading ended before the logs did')
  const lengthMs = traffic.lastMs - (traffic.firstMs ?? traffic.lastMs)
  const goodSeen = checkTraffic(traffic, marked, lengthMs)
  const windows = countedWindows(read.countedFor).filter(({ windowMs }) => windowMs <= lengthMs)
  const chosen = choose(traffic, { windows, hasGood: marked !== undefined })
  const document = documentOf(chosen.limits)
  const proposal: Proposal = {
    document,
    basis: marked ? 'good clients' : 'guess',
    clients: marked ? goodSeen : traffic.all.clients.size,
    ...chosen,
  }
  const report = await replay({ ...options, document }, traffic.all.requests)
  const whole = {
    ...report,
    caveats: [...caveatsOf(traffic, windows), ...apartCaveat(proposal), ...report.caveats],
    proposal,
  }
  const named = reading.hashed.isUsed ? withIdentities(whole, reading.hashed.namer()) : whole
  return (options.identities === 'plain' ? named : withPseudonyms(named)) as ProposalReport
}

interface ReadTraffic {
  readonly traffic: Traffic
  readonly resolutionMs: number
  /** The resolution that windows are longer by, so that exact times would count no more. */
  readonly countedFor: number
}

async function trafficOf(
  options: ProposeOptions,
  reading: Reading,
  marked: GoodClients | undefined,
  leastResolutionMs: number,
): Promise<ReadTraffic> {
  const span = spanOf(options.since, options.until)
  const logs = await logsOf(options)
  const resolutions = new Map<number, number>()
  let traffic: Traffic | undefined
  let countedFor = leastResolutionMs
  const time = new LogTime(0)
  for await (const read of logs) {
    const batch: readonly LogRecord[] = span ? span.within(read) : read
    if (batch.length === 0) continue
    countsOf(batch, resolutions)
    if (!traffic) {
      countedFor = Math.max(leastResolutionMs, resolutionOf(resolutions))
      traffic = new Traffic(lengthsOf(countedFor))
    }
    for (const record of batch) {
      const context = new RecordContext(record, reading, record.startMs, time)
      if (marked) context.isGood = marked.has(context)
      traffic.count(context)
    }
    options.onProgress?.(logs.counts.bytesRead, logs.bytesTotal)
  }
  span?.check()
  traffic ??= new Traffic(lengthsOf(1))
  if (!options.isLenient) checkAddresses('all', traffic.all.clients, clientFieldIn(options, logs))
  return { traffic, resolutionMs: resolutionOf(resolutions), countedFor }
}

/** The lengths that are counted: each window, and where times are coarse one that is longer by that. */
function lengthsOf(resolutionMs: number): number[] {
  return WINDOWS_MS.flatMap((windowMs) => (resolutionMs > 1 ? [windowMs, windowMs + resolutionMs - 1] : [windowMs]))
}

function countedWindows(resolutionMs: number): CountedWindow[] {
  const lengths = lengthsOf(resolutionMs)
  return WINDOWS_MS.map((windowMs) => {
    const place = lengths.indexOf(windowMs)
    return { windowMs, place, longerPlace: resolutionMs > 1 ? place + 1 : place }
  })
}

const PROXY = 'If it is a proxy, --trust-proxy NETWORK or --client FIELD names the client'

/** @throws SimulationError where the log says too little for any limit; otherwise how many good clients it has */
function checkTraffic({ all }: Traffic, marked: GoodClients | undefined, lengthMs: number): number {
  const { clients, requests } = all
  const tooLittle = (reason: string) => new SimulationError(`no limit can be proposed: ${reason}`)
  if (clients.size === 1)
    throw tooLittle(`the log has one client, ${clients.nameOf(0)}, and none to compare it with. ${PROXY}`)
  if (lengthMs < SHORTEST_MS) {
    throw tooLittle(
      `the log lasts ${durationText(lengthMs)} for ${counted(requests, 'request')}, and a limit needs at least ${durationText(SHORTEST_MS)}`,
    )
  }
  const proxies = fewProxies(all)
  if (proxies) throw tooLittle(proxies)
  if (!marked && clients.size < FEWEST_CLIENTS) {
    throw tooLittle(
      `the log has ${counted(clients.size, 'client')}, and a guess needs ${FEWEST_CLIENTS.toLocaleString('en')}: take a longer log, or name clients that must not be refused by --good`,
    )
  }
  let good = 0
  for (let row = 0; row < clients.size; row++) if (clients.isGood(row)) good++
  if (marked && good === 0)
    throw tooLittle(`none of the good clients is in the log: ${marked.absent().map(quoted).join(', ')}`)
  return good
}

/** The share of requests from private addresses that suggests proxies, and how many addresses proxies have at most. */
const MOST = 0.5
const MAX_PROXIES = 10

function fewProxies({ clients, requests }: Traffic['all']): string | undefined {
  let [proxies, theirs] = [0, 0]
  for (let row = 0; row < clients.size; row++) {
    if (!isPrivateAddress(clients.nameOf(row))) continue
    proxies++
    theirs += clients.requestsOf(row)
  }
  if (proxies > MAX_PROXIES || theirs <= MOST * requests) return undefined
  const who = proxies === 1 ? 'one private address has' : `${proxies} private addresses have`
  return `${who} ${percent(theirs / requests)} of the requests. ${PROXY.replace('it is a proxy', 'they are proxies')}`
}

function apartCaveat({ limits }: Proposal): string[] {
  if (new Set(limits.map(({ policy }) => policy)).size === 1) return []
  return [
    'Each policy is judged by itself, as in report mode. Enforced together, a request that one refuses does not count in the others, which then usually refuse fewer.',
  ]
}

function caveatsOf({ hasMoreGroups, firstMs = 0, lastMs }: Traffic, windows: readonly CountedWindow[]): string[] {
  const longest = (windows.at(-1) as CountedWindow).windowMs
  const missing = WINDOWS_MS.find((windowMs) => windowMs > longest)
  return [
    ...(missing === undefined
      ? []
      : [
          `The log lasts ${durationText(Math.max(SHORTEST_MS, Math.floor((lastMs - firstMs) / 60_000) * 60_000))}: no limit for ${durationText(missing)} can be proposed.`,
        ]),
    ...(hasMoreGroups ? ['Not all groups of paths were counted apart: there are more than 1,000.'] : []),
  ]
}
