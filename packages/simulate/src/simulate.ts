import type { Resolvers } from '@sluice/policies'
import { loadDocument, type PlayedDocument } from './documents.js'
import { Bounds } from './figures/bounds.js'
import { Curves } from './figures/curves.js'
import { Figures } from './figures/figures.js'
import { Splits } from './figures/splits.js'
import { clientFieldOf, formatOf } from './formats/index.js'
import { RECORDING } from './formats/recording.js'
import { Lane, type StateBounds } from './lane.js'
import { openApart } from './read/apart/open-apart.js'
import { sizeOf } from './read/bytes.js'
import { isRecording } from './read/is-recording.js'
import { type LogSource, nameOf } from './read/log-source.js'
import { type LogsInOrder, openLogs } from './read/open-logs.js'
import type { LogRecord } from './record.js'
import { checkAddresses } from './replay/check-addresses.js'
import { type GoodClients, goodClients } from './replay/good.js'
import { LogTime } from './replay/log-time.js'
import { matcherOf } from './replay/match-by-path.js'
import { checkNeeds, policyByAddress, readsHeaders } from './replay/needs.js'
import { type ReadingOptions, readingOf, resolversOf } from './replay/reading.js'
import { type Reading, RecordContext } from './replay/record-context.js'
import { unmatched } from './replay/recorded.js'
import { type Played, type Spread, Spreader } from './replay/spread.js'
import { spanOf, type TimeSpan } from './replay/time-span.js'
import { makeReport } from './report/make-report.js'
import { withIdentities, withPseudonyms } from './report/pseudonyms.js'
import type { SimulationReport } from './report.js'

export interface SimulateOptions extends ReadingOptions {
  /** Access logs: paths, which may be of gzip files, `-` for standard input, or lines, as `node:readline` has them. */
  readonly logs: readonly LogSource[]
  /** A document of policies: its path, or its data. */
  readonly document: string | object
  /** Another document that the report compares it with. @default none */
  readonly against?: string | object | undefined
  /** The form of the logs: a name, or the text of nginx's `log_format`. @default recognised by the first lines */
  readonly format?: string | undefined
  /** Leaves out earlier requests: a time of ISO 8601, in UTC where it names no zone. @default none */
  readonly since?: string | undefined
  /** Leaves out requests of that time and later ones. @default none */
  readonly until?: string | undefined
  /** Whether any number of lines may not parse. @default at most 1 % */
  readonly isLenient?: boolean
  /** Functions that the document names. They get the log's record as request. @default `user`, by the log's user */
  readonly resolvers?: Resolvers
  /** Clients that must not be refused: addresses, networks, `KIND=VALUE`, `.FIELD=VALUE`, or files with one a line. @default none */
  readonly good?: readonly string[]
  /** Whether to find the worst window of each client, and the effect of other limits. Takes several times as long. @default false */
  readonly curve?: boolean
  /** Whether the report names clients, or has pseudonyms instead, which differ in each run. @default 'pseudonyms' */
  readonly identities?: 'plain' | 'pseudonyms'
  /** Ends reading: the report is of what was read. */
  readonly signal?: AbortSignal
  /** Called now and then with the bytes read so far, and those of all files where they are known. */
  readonly onProgress?: (readBytes: number, totalBytes: number | undefined) => void
  /** Bounds of the states of each document. @default 60,000,000 states and 8 GiB */
  readonly bounds?: Partial<StateBounds>
}

/** Below so many times the resolution of a log's clock, windows are played in several ways. */
const COARSE = 3
/** Requests that are looked at for what policies need. */
const LOOKED_AT = 1000

/**
 * Plays access logs by a document of policies, and reports what it would have refused. It keeps this thread busy.
 *
 * @throws SimulationError for options, documents and logs that are wrong. It names options as `sluice simulate` has them.
 */
export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const report = await replay(options)
  return options.identities === 'plain' ? report : withPseudonyms(report)
}

/** The same with names of clients. `maxRequests`: further ones are left out, as a log may have grown since it was read before. */
export async function replay(
  options: SimulateOptions,
  maxRequests = Number.POSITIVE_INFINITY,
): Promise<SimulationReport> {
  const simulation = await Simulation.open(options)
  return simulation.run(maxRequests)
}

/** A document as it is played. */
interface PlayedLane {
  readonly lane: Lane
  readonly spread: Spread
  readonly spreader: Spreader | undefined
}

class Simulation {
  readonly #options: SimulateOptions
  readonly #reading: Reading
  readonly #document: PlayedDocument
  readonly #against: PlayedDocument | undefined
  readonly #good: GoodClients | undefined
  readonly #span: TimeSpan | undefined
  readonly #figures: Figures
  readonly #logs: LogsInOrder
  #lanes: PlayedLane[] = []
  #before: PlayedLane | undefined
  /** Of documents with another number in one limit. */
  #tried: readonly PlayedLane[] = []
  #firstMs: number | undefined
  #lastMs = 0
  /** How many records have each. */
  readonly #resolutions = new Map<number, number>()

  static async open(options: SimulateOptions): Promise<Simulation> {
    const { document, against, resolvers: given = {}, good = [], curve = false } = options
    const span = spanOf(options.since, options.until)
    const isRecorded = options.format === RECORDING.name || (await isRecording(options.logs[0]))
    const assumed = readingOf(options, given.keys?.user !== undefined, isRecorded)
    const named = resolversOf(given, assumed)
    const played = await loadDocument(document, named, isRecorded)
    const before = against === undefined ? undefined : await loadDocument(against, named, isRecorded)
    const { resolvers } = played
    const isRead = options.resolvers !== undefined || options.trustProxy !== undefined
    const readsAny = isRead || [played, before].some((each) => each && readsHeaders(each.data))
    const reading = { ...assumed, readsHeaders: readsAny }
    const marked = goodClients(good, resolvers)
    const figures = new Figures(played.policies)
    figures.splits = new Splits()
    for (const policy of figures.accounts.byName.values()) {
      const bounds = Bounds.of(policy, played.data)
      if (bounds) figures.bounds.set(policy, bounds)
    }
    if (curve || marked) figures.curves = await Curves.of(figures.accounts, played.data, resolvers, curve)
    return new Simulation(options, span, reading, [played, before], marked, figures, await logsOf(options))
  }

  private constructor(
    options: SimulateOptions,
    span: TimeSpan | undefined,
    reading: Reading,
    [document, against]: readonly [PlayedDocument, PlayedDocument | undefined],
    good: GoodClients | undefined,
    figures: Figures,
    logs: LogsInOrder,
  ) {
    this.#options = options
    this.#reading = reading
    this.#document = document
    this.#against = against
    this.#good = good
    this.#span = span
    this.#figures = figures
    this.#logs = logs
  }

  async run(maxRequests: number): Promise<SimulationReport> {
    let left = maxRequests
    for await (const read of this.#logs) {
      const batch = (this.#span ? this.#span.within(read) : read).slice(0, left)
      left -= batch.length
      if (batch.length === 0) continue
      if (this.#firstMs === undefined) this.#begin(batch)
      countsOf(batch, this.#resolutions)
      this.#lastMs = (batch.at(-1) as LogRecord).startMs
      for (const each of this.#all) await this.#play(each, each.spreader?.push(batch) ?? batch)
      this.#options.onProgress?.(this.#logs.counts.bytesRead, this.#logs.bytesTotal)
    }
    this.#span?.check()
    // Reading may have ended before the first line.
    if (this.#firstMs === undefined) this.#begin([])
    for (const each of this.#all) {
      if (each.spreader) await this.#play(each, each.spreader.end())
      await each.lane.end()
    }
    if (!this.#options.isLenient) {
      checkAddresses(policyByAddress(this.#document.data), this.#figures.addresses, this.#clientField)
    }
    const report = makeReport({
      logs: this.#logs,
      files: this.#options.logs.map((log) => (typeof log === 'string' ? log : nameOf(log))),
      firstMs: this.#firstMs ?? 0,
      lastMs: this.#lastMs,
      resolutionMs: resolutionOf(this.#resolutions),
      lanes: this.#lanes.map(({ lane }) => lane),
      before: this.#before?.lane,
      absentGood: this.#good?.absent(),
      unmatched: this.#unmatched,
      keepsOverrides: this.#options.curve === true && (this.#document.data.overrides?.length ?? 0) > 0,
    })
    const { hashed } = this.#reading
    return hashed.isUsed ? withIdentities(report, hashed.namer()) : report
  }

  /** What the documents have of clients that recordings cannot be matched with. */
  get #unmatched(): readonly string[] {
    if (!this.#logs.formats.some((name) => name.startsWith(RECORDING.name))) return []
    const documents = [this.#document, ...(this.#against ? [this.#against] : [])]
    return [...new Set(documents.flatMap(({ data }) => unmatched(data) ?? []))]
  }

  /** Where the address of a client is, as its users know it. */
  get #clientField(): string | undefined {
    return clientFieldIn(this.#options, this.#logs)
  }

  get #all(): readonly PlayedLane[] {
    return [...this.#lanes, ...(this.#before ? [this.#before] : []), ...this.#tried]
  }

  #begin(batch: readonly LogRecord[]): void {
    const [first] = batch
    const startMs = first?.startMs ?? 0
    this.#firstMs = startMs
    const looked = batch
      .slice(0, LOOKED_AT)
      .map((record) => new RecordContext(record, this.#reading, record.startMs, new LogTime(record.startMs)))
    if (first) checkNeeds(this.#document.data, looked)
    if (first && this.#against) checkNeeds(this.#against.data, looked)
    this.#lanes = [this.#laneOf(this.#document, 'at once', startMs, this.#figures)]
    if (this.#figures.accounts.shortestWindowMs < COARSE * resolutionOf(countsOf(batch)) && !this.#isBounded) {
      for (const spread of ['evenly', 'evenly by client'] as const) {
        this.#lanes.push(this.#laneOf(this.#document, spread, startMs))
      }
    }
    this.#before = this.#against && this.#laneOf(this.#against, 'at once', startMs)
    if (this.#before) for (const figures of [this.#figures, this.#before.lane.figures]) figures.refusals = new Map()
    this.#tried = (this.#figures.curves?.documents ?? []).map((tried) => {
      const played = this.#laneOf(tried.document, 'at once', startMs)
      tried.accounts = played.lane.figures.accounts
      return played
    })
  }

  /** Whether the numbers of all policies have bounds, which several enforced ones lose where they decide on the same requests. */
  get #isBounded(): boolean {
    const { accounts, bounds } = this.#figures
    const policies = [...accounts.byName.values()]
    return bounds.size === policies.length && policies.filter(({ isReported }) => !isReported).length <= 1
  }

  #laneOf(
    document: PlayedDocument,
    spread: Spread,
    startMs: number,
    figures = new Figures(document.policies),
  ): PlayedLane {
    const bounds = { maxKeys: 60_000_000, maxBytes: 8 * 2 ** 30, ...this.#options.bounds }
    return {
      lane: new Lane(matcherOf(document), figures, startMs, bounds),
      spread,
      spreader: spread === 'at once' ? undefined : new Spreader(spread, this.#reading.addressOf),
    }
  }

  async #play({ lane }: PlayedLane, records: readonly LogRecord[] | readonly Played[]): Promise<void> {
    const reading = this.#reading
    const good = this.#good
    for (const each of records) {
      const record = 'record' in each ? each.record : each
      const at = 'record' in each ? each.at : record.startMs
      const context = new RecordContext(record, reading, at, lane.time)
      if (good) context.isGood = good.has(context)
      const played = lane.play(context)
      if (played) await played
    }
  }
}

/** The field of the client's address, as its users know it. */
export function clientFieldIn(
  { client, format }: Pick<SimulateOptions, 'client' | 'format'>,
  { formats }: LogsInOrder,
): string | undefined {
  return client ?? (format === undefined ? clientFieldOf(formats[0]) : formatOf(format).client)
}

/** The coarsest resolution that more than a few records have: a time that ends on a second may look like one to the second. */
export function resolutionOf(counts: ReadonlyMap<number, number>): number {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const common = [...counts].filter(([, count]) => count > FEW * all)
  return Math.max(1, ...common.map(([resolutionMs]) => resolutionMs))
}

/** How many records have each resolution. */
export function countsOf(batch: readonly LogRecord[], counts = new Map<number, number>()): Map<number, number> {
  for (const { resolutionMs } of batch) counts.set(resolutionMs, (counts.get(resolutionMs) ?? 0) + 1)
  return counts
}

const FEW = 0.05

/** Logs of fewer bytes are read in this thread: to start another one takes as long. */
const MANY_BYTES = 4 * 1024 * 1024

export async function logsOf({
  logs,
  format,
  isLenient = false,
  signal,
}: Pick<SimulateOptions, 'logs' | 'format' | 'isLenient' | 'signal'>): Promise<LogsInOrder> {
  const files = logs.filter((log) => typeof log === 'string')
  if (files.length === logs.length && (await sizeOf(files)) > MANY_BYTES)
    return openApart({ files, format, isLenient }, signal)
  return openLogs(logs, {
    isLenient,
    ...(format !== undefined && { format: formatOf(format) }),
    ...(signal && { signal }),
  })
}
