import cluster from 'node:cluster'
import { setTimeout } from 'node:timers/promises'
import { type Policies, policies } from '@sluice/policies'
import { exactDuration } from '../../program/duration.js'
import type { Environment } from '../../program/environment.js'
import { cannotIn } from '../../serve/cannot.js'
import { makeDecider } from '../../serve/decider.js'
import { type Health, probes } from '../../serve/health.js'
import { resolversOf } from '../../serve/named-keys.js'
import { OperatorLog } from '../../serve/operator-log.js'
import { startServer } from '../../serve/server.js'
import { memoryState, redisState, type State } from '../../serve/state.js'
import type { ServeSettings } from './settings.js'

/**
 * Decides until it is asked to end.
 *
 * @throws PoliciesError for a wrong document; what Node does where it cannot listen; SluiceError
 */
export async function serve(settings: ServeSettings, environment: Environment): Promise<void> {
  const { stderr } = environment
  // Before anything is listened to: a signal that comes meanwhile ends it, too.
  const stopped = environment.untilStopped?.() ?? new Promise<void>(() => {})
  ignoreFurtherSignals()
  const { redis } = settings
  const state = redis ? await redisState(redis.target, redis.prefix, redis.isCluster, stderr) : memoryState()
  try {
    const loaded = await load(settings, state)
    try {
      const leaving = new AbortController()
      const server = await start(settings, state, loaded, new OperatorLog(stderr), leaving.signal)
      tellReady(settings, state, loaded, server.port, environment)
      await stopped
      leaving.abort()
      tellLeaving(settings, environment)
      // Load balancers learn of it by /readyz, and send nothing more, before connections are refused.
      await setTimeout(settings.graceMs)
      await server.close(settings.drainMs)
    } finally {
      await loaded.close()
    }
  } finally {
    await state.close()
  }
}

/**
 * Terminals and systemd signal all processes, and the one above the workers signals these again. A second signal is meant for that
 * one: workers end at once with it.
 */
function ignoreFurtherSignals(): void {
  if (cluster.isWorker) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => {})
}

/** @throws PoliciesError with all that is wrong with the document, and with what a decider cannot do */
function load({ document, named, redis }: ServeSettings, { client }: State): Promise<Policies> {
  const source =
    'file' in document
      ? { file: document.file }
      : { redis: client, name: document.inRedis, prefix: redis?.prefix ?? '' }
  return policies.from({ ...source, ...resolversOf(named), check: (each) => cannotIn(each, named) })
}

function start(settings: ServeSettings, state: State, loaded: Policies, log: OperatorLog, leaving: AbortSignal) {
  const { dialect, onUnavailable, workers } = settings
  const decide = makeDecider({
    policies: loaded,
    store: state.store,
    onUnavailable,
    // All processes together admit no more than the limits then.
    share: 1 / workers,
    takesCosts: dialect.namesKeys,
    proxyRemedy: dialect.proxyRemedy,
    onFailure: (error) => log.warn('decision', `a request could not be decided: ${(error as Error)?.message ?? error}`),
  })
  const asked = { ...settings, decide }
  const healthNow = (): Health => ({
    isReady: !leaving.aborted,
    store: state.isAvailable() ? 'available' : 'unavailable',
    version: loaded.version,
    isCurrent: loaded.error === undefined,
  })
  return startServer({
    ...settings,
    routes: new Map([
      ['/v1/decide', (request, response) => dialect.answer(request, response, asked)],
      ...probes(healthNow),
    ]),
    refusalOf: dialect.refusalOf,
    leaving,
    onProblem: (kind, message) => log.warn(kind, message),
  })
}

function tellReady(
  { dialectName, host, tls }: ServeSettings,
  { name }: State,
  { version }: Policies,
  port: number,
  { stdout }: Environment,
): void {
  // The one that started it says so once all workers listen.
  if (cluster.isWorker) return
  const origin = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
  stdout.write(`sluice decides for ${dialectName} on ${origin}, by version ${version} of the document, in ${name}\n`)
}

/** It takes a while, and a person who has pressed Ctrl-C waits for it. */
export function tellLeaving({ graceMs }: Pick<ServeSettings, 'graceMs'>, { stderr }: Environment): void {
  if (cluster.isWorker || graceMs === 0) return
  stderr.write(
    `sluice: /readyz answers 503 for ${exactDuration(graceMs)}, then it ends; a second signal ends it at once\n`,
  )
}
