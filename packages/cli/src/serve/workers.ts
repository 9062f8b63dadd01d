import cluster, { type Worker } from 'node:cluster'
import type { Environment } from '../program/environment.js'

/** Between the end of a worker and its successor, in ms: workers that end at once must not use up a core. */
const RESTART_AFTER_MS = 1000

/** Tells a worker its number, from 1. Its successor has the same one. */
const PLACE = 'SLUICE_WORKER'

/** The number of this worker. Undefined for a process that is none. */
export function placeOfWorker(): number | undefined {
  return cluster.isWorker ? Number(process.env[PLACE]) : undefined
}

function firstFree(places: ReadonlySet<number>): number {
  let place = 1
  while (places.has(place)) place++
  return place
}

/** The settings that the process above the workers needs. */
export interface Supervised {
  readonly workers: number
  readonly dialectName: string
}

/**
 * Runs this command line in several processes, which share the address, and starts another where one ends by itself. The first
 * starts alone, so that a problem is reported once. Resolves to the exit code when all have ended.
 */
export function superviseWorkers(
  { workers, dialectName }: Supervised,
  environment: Environment,
  onStop: () => void,
): Promise<number> {
  return new Promise((resolve) => {
    const alive = new Set<Worker>()
    /** Those of the workers that are alive. */
    const places = new Set<number>()
    let started = 0
    let listening = 0
    let isStopping = false
    const stop = () => {
      isStopping = true
      onStop()
      for (const worker of alive) worker.process.kill('SIGTERM')
      if (alive.size === 0) resolve(0)
    }
    const start = () => {
      if (isStopping) return
      started++
      const place = firstFree(places)
      places.add(place)
      const worker = cluster.fork({ [PLACE]: String(place) })
      alive.add(worker)
      worker.once('listening', ({ address, port }) => {
        listening++
        if (listening === workers) {
          environment.stdout.write(`sluice decides for ${dialectName} on ${address}:${port}, in ${workers} processes\n`)
        }
        if (started < workers) start()
      })
      worker.once('exit', (code, signal) => {
        alive.delete(worker)
        places.delete(place)
        if (isStopping || listening === 0) {
          // The first one could not start, and has reported why.
          if (alive.size === 0) resolve(isStopping ? 0 : (code ?? 1))
          return
        }
        environment.stderr.write(`sluice: a worker has ended (${signal ?? code}); another one starts\n`)
        setTimeout(start, RESTART_AFTER_MS)
      })
    }
    void environment.untilStopped?.().then(stop)
    start()
  })
}
