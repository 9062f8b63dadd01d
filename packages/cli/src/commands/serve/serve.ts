import cluster from 'node:cluster'
import { setTimeout } from 'node:timers/promises'
import type { Store } from '@sluice/core'
import { durationText } from '@sluice/core/internal'
import { type Policies, policies, type Resolvers } from '@sluice/policies'
import type { Recording } from '@sluice/simulate/recording'
import type { Environment, Output } from '../../program/environment.js'
import { UsageError } from '../../program/usage-error.js'
import { cannotIn, cannotInLimits, type Named } from '../../serve/cannot.js'
import { CHANGES } from '../../serve/charges.js'
import { makeDecider } from '../../serve/decider.js'
import type { DescribedRequest } from '../../serve/described-request.js'
import { answerChange } from '../../serve/dialects/json.js'
import { type Health, probes } from '../../serve/health.js'
import { hostCheck } from '../../serve/hosts.js'
import { countMetrics, type Metrics, metricsOfWorkers } from '../../serve/metrics.js'
import { startMetricsServer } from '../../serve/metrics-server.js'
import { type Answer, startServer } from '../../serve/server.js'
import { memoryState, redisState, type State } from '../../serve/state.js'
import { placeOfWorker, superviseWorkers } from '../../serve/workers.js'
import type { Address, RecordSettings, ServeSettings } from './settings.js'
import { sourceAt } from './source.js'

const AGAIN_AFTER_MS = 60_000

/** Warns the operator of what goes wrong: each kind once a minute, or its cause could fill the log. */
class OperatorLog {
  readonly #output: Output
  readonly #warnedAt = new Map<string, number>()

  constructor(output: Output) {
    this.#output = output
  }

  /** `kind`: one of a few, never what a caller sent. */
  warn(kind: string, message: string): void {
    const now = performance.now()
    const last = this.#warnedAt.get(kind)
    if (last !== undefined && now - last < AGAIN_AFTER_MS) return
    this.#warnedAt.set(kind, now)
    // Without characters that control a terminal.
    this.#output.write(`sluice: ${message.replace(/[^\x20-\x7e\n]/g, '?')} (reported once a minute)\n`)
  }
}

/**
 * Decides until a signal ends it.
 *
 * @throws PoliciesError for a wrong document; Node's error where it cannot listen; SluiceError
 */
export async function serve(settings: ServeSettings, environment: Environment): Promise<void> {
  const { stderr } = environment
  // Before it listens anywhere: a signal that comes meanwhile ends it, too.
  const stopped = environment.untilStopped?.() ?? new Promise<void>(() => {})
  ignoreFurtherSignals()
  const { redis, offenders } = settings
  const log = new OperatorLog(stderr)
  /** To be closed at the end, the last first. */
  const opened: { close(): unknown }[] = []
  try {
    const state = redis
      ? await redisState(redis.target, redis.prefix, redis.isCluster, offenders, stderr)
      : memoryState(offenders)
    opened.push(state)
    const loaded = await load(settings, state)
    opened.push(loaded)
    if (settings.metrics) {
      const metrics = await countMetrics()
      opened.push({ close: metrics.stop })
      // The metrics of workers are shown by the process above them.
      if (!cluster.isWorker) {
        opened.push(await showMetrics(settings, settings.metrics, metrics, state.store, log, environment))
      }
    }
    const recording = settings.record && (await record(settings.record))
    if (recording) opened.push({ close: () => recording.stop() })
    const leaving = new AbortController()
    const server = await start(settings, state, loaded, log, leaving.signal, recording)
    reportReady(settings, state, loaded, server.port, environment)
    await stopped
    leaving.abort()
    reportLeaving(settings, environment)
    // Load balancers see it by /readyz, and send nothing more, before connections are refused.
    await setTimeout(settings.graceMs)
    await server.close(settings.drainMs)
  } finally {
    for (const each of opened.reverse()) await each.close()
  }
}

/** Starts workers that decide, and shows their counts. Resolves to the exit code. @throws Node's error where it cannot listen */
export async function serveByWorkers(settings: ServeSettings, environment: Environment): Promise<number> {
  const log = new OperatorLog(environment.stderr)
  const { metrics } = settings
  const shown = metrics && (await showMetrics(settings, metrics, await metricsOfWorkers(), undefined, log, environment))
  try {
    return await superviseWorkers(settings, environment, () => reportLeaving(settings, environment))
  } finally {
    await shown?.close()
  }
}

async function showMetrics(
  settings: ServeSettings,
  address: Address,
  metrics: Metrics,
  store: Store | undefined,
  log: OperatorLog,
  { stdout }: Environment,
): Promise<{ close(): Promise<void> }> {
  const onProblem = (kind: string, message: string) => log.warn(`metrics ${kind}`, message)
  const shown = settings.offenders ? store : undefined
  const server = await startMetricsServer({ ...settings, ...address, onProblem }, metrics, shown)
  stdout.write(`sluice shows metrics on ${originOf(settings, address.host, server.port)}/metrics\n`)
  return { close: () => server.close(0) }
}

/**
 * Terminals and systemd signal all processes, and the one above the workers signals these again. A second signal is meant for that
 * one: workers end at once with it.
 */
function ignoreFurtherSignals(): void {
  if (cluster.isWorker) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => {})
}

/** @throws PoliciesError with all that is wrong with the document, and with what a decider cannot do */
async function load({ document, named, redis }: ServeSettings, { client }: State): Promise<Policies> {
  return policies.from({
    ...(await sourceAt(document, client, redis?.prefix ?? '')),
    ...resolversOf(named),
    check: (each) => cannotIn(each, named),
    checkOverride: (limits) => cannotInLimits(limits, named),
  })
}

/** Each worker has a file of its own, which its successor takes over. */
async function record({ file, ...options }: RecordSettings): Promise<Recording> {
  const { startRecording } = await import('@sluice/simulate/recording')
  const place = placeOfWorker()
  try {
    return startRecording({ ...options, file: place === undefined ? file : `${file}.worker-${place}` })
  } catch (error) {
    throw new UsageError(`--record: ${(error as Error).message}`)
  }
}

function start(
  settings: ServeSettings,
  state: State,
  loaded: Policies,
  log: OperatorLog,
  leaving: AbortSignal,
  recording: Recording | undefined,
) {
  const { dialect, unavailable, workers, keepMs } = settings
  const { decide, limiter } = makeDecider({
    policies: loaded,
    store: state.store,
    // At this share all processes together admit no more than the limits.
    unavailable: { decide: unavailable, ...(unavailable === 'local' && { share: 1 / workers }) },
    keepMs,
    takesCosts: dialect.namesKeys,
    proxyRemedy: dialect.proxyRemedy,
    // The gateway sends the response, whose status is known where it is refused.
    onDecided: recording && ((context, { allowed, status }) => recording.ended(context, allowed ? undefined : status)),
    onFailure: (error) => log.warn('decision', `a request could not be decided: ${(error as Error)?.message ?? error}`),
  })
  const dialectSettings = { ...settings, decide }
  const healthNow = (): Health => ({
    isReady: !leaving.aborted,
    store: state.isAvailable() ? 'available' : 'unavailable',
    version: loaded.version,
    isCurrent: loaded.error === undefined,
  })
  return startServer({
    ...settings,
    routes: new Map([
      ['/v1/decide', (request, response) => dialect.answer(request, response, dialectSettings)],
      ...(keepMs === undefined ? [] : changeRoutes({ ...settings, limiter })),
      ...probes(healthNow),
    ]),
    refusalOf: dialect.refusalOf,
    checkHost: hostCheck(settings, true),
    leaving,
    onProblem: (kind, message) => log.warn(kind, message),
  })
}

/** The paths at which callers change charges. */
function changeRoutes(settings: Parameters<typeof answerChange>[3]): [string, Answer][] {
  return Object.keys(CHANGES).map((name) => [
    `/v1/${name}`,
    (request, response) => answerChange(name, request, response, settings),
  ])
}

function reportReady(
  settings: ServeSettings,
  { name }: State,
  { version }: Policies,
  port: number,
  { stdout }: Environment,
): void {
  // The process that started it reports this once all workers listen.
  if (cluster.isWorker) return
  const { dialectName, host } = settings
  const origin = originOf(settings, host, port)
  stdout.write(`sluice decides for ${dialectName} on ${origin}, by version ${version} of the document, in ${name}\n`)
}

function originOf({ tls }: Pick<ServeSettings, 'tls'>, host: string, port: number): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** It takes a while, and a person who has pressed Ctrl-C waits for it. */
function reportLeaving({ graceMs }: Pick<ServeSettings, 'graceMs'>, { stderr }: Environment): void {
  if (cluster.isWorker || graceMs === 0) return
  stderr.write(
    `sluice: /readyz answers 503 for ${durationText(graceMs)}, then it ends; a second signal ends it at once\n`,
  )
}

/** Resolvers of keys and tiers, from the names that callers send. */
function resolversOf({ keys, tiers }: Named): Resolvers {
  const namedIn = <Value>(values: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined =>
    values && Object.hasOwn(values, name) ? values[name] : undefined
  return {
    keys: Object.fromEntries(keys.map((name) => [name, (request: DescribedRequest) => namedIn(request.keys, name)])),
    // A missing name is reported as a mistake, with the known ones.
    tiers: Object.fromEntries(
      tiers.map((name) => [name, (request: DescribedRequest) => namedIn(request.tiers, name) ?? '']),
    ),
  }
}
