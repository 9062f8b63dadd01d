import type { StoreTime } from '../../redis/blocks/store-time.js'
import { unreadable } from '../../redis/scripts/reply-reader.js'
import { callKey, runAt, type Server } from '../../redis/scripts/run.js'
import { scoresIn } from '../../redis/scripts/scores.js'
import { figuresScript } from '../../redis/scripts/scripts.generated.js'
import {
  type CountsReport,
  type FigureStep,
  type FiguresKeeper,
  type LiveText,
  MAX_FIGURE_NAMES,
  STEP_MS,
} from '../../store/figures.js'

/** A process that has not reported for as long is gone, in ms. */
const LIVE_MS = 10_000
/** Processes whose figures are read. */
const MAX_PROCESSES = 1000
/** Keys that are read at a time. */
const AT_A_TIME = 100

const SHORT: Readonly<Record<FigureStep, string>> = { minute: 'm', hour: 'h' }

interface TimedServer extends Server {
  readonly time: StoreTime
}

/** The figures of processes in Redis, on one master of a cluster. */
export class RedisFigures implements FiguresKeeper {
  readonly from = 'processes'
  readonly #server: TimedServer
  /** The start of all keys. */
  readonly #start: string
  readonly #lastReports = new Set<() => Promise<void>>()

  constructor(server: TimedServer) {
    this.#server = server
    this.#start = `${server.prefix}{figures}:`
  }

  now(): number {
    return this.#server.time.now()
  }

  async add(report: CountsReport): Promise<boolean> {
    for (let tries = 0; tries < 3; tries++) {
      const outcome = await this.#send(report)
      if (outcome !== 'minute') return outcome === 'added'
    }
    throw unreadable('expected a clock that goes forward')
  }

  async #send({ run, number, ageMs, after, live, counts }: CountsReport): Promise<string> {
    const minute = this.#numberOf('minute', ageMs)
    const keys = [`sent:${run}`, `live:${run}`, 'processes', `m:${minute}`, `h:${this.#numberOf('hour', ageMs)}`]
    const texts = counts.flatMap(([name, count, added]) =>
      after === undefined ? [name, String(count), String(added)] : [name, String(count)],
    )
    const args = [ageMs, minute, run, number, after ?? '', live, MAX_FIGURE_NAMES].map(String)
    const reply = await runAt(
      this.#server,
      figuresScript,
      keys.map((key) => this.#start + key),
      [...args, ...texts],
    )
    const [now, outcome] = Array.isArray(reply) ? reply.map(String) : []
    if (outcome === undefined || !Number.isFinite(Number(now))) throw unreadable('expected an outcome of figures')
    this.#server.time.observe(Number(now))
    return outcome
  }

  async live(): Promise<readonly LiveText[]> {
    const now = this.now()
    const reply = await this.#call('ZRANGE', 'processes', '0', '-1', 'WITHSCORES')
    const recent = scoresIn(reply)
      .map(([run, at]) => ({ run, ageMs: Math.max(0, now - at), isRecent: Math.abs(now - at) <= LIVE_MS }))
      .filter(({ isRecent }) => isRecent)
      .slice(-MAX_PROCESSES)
    const read = await inParts(recent, ({ run }) => this.#readable('GET', `live:${run}`))
    return recent.flatMap(({ run, ageMs }, i) => {
      const text = read[i]
      // Gone meanwhile.
      return text === null ? [] : [{ run, ageMs, text: String(text ?? '') }]
    })
  }

  async sums(step: FigureStep, first: number, last: number): Promise<(ReadonlyMap<string, number> | undefined)[]> {
    const numbers = Array.from({ length: last - first + 1 }, (_, i) => first + i)
    return inParts(numbers, async (number) => {
      const reply = await this.#readable('ZRANGE', `${SHORT[step]}:${number}`, '0', '-1', 'WITHSCORES')
      return reply === undefined ? undefined : sumsIn(scoresIn(reply))
    })
  }

  beforeClose(run: () => Promise<void>): void {
    this.#lastReports.add(run)
  }

  /** Sends the last reports of those who report. */
  async close(): Promise<void> {
    await Promise.all([...this.#lastReports].map((report) => report()))
  }

  #numberOf(step: FigureStep, ageMs: number): number {
    return Math.floor((this.now() - ageMs) / STEP_MS[step])
  }

  /** Undefined for a foreign value. */
  async #readable(command: string, name: string, ...args: string[]): Promise<unknown> {
    try {
      return await this.#call(command, name, ...args)
    } catch (error) {
      if (/WRONGTYPE/.test(String(error))) return undefined
      throw error
    }
  }

  #call(command: string, name: string, ...args: string[]): Promise<unknown> {
    return callKey(this.#server, command, this.#start + name, ...args)
  }
}

/** A count that is no number of ours is left out. */
function sumsIn(scores: readonly (readonly [name: string, count: number])[]): ReadonlyMap<string, number> {
  return new Map(scores.filter(([, count]) => Number.isSafeInteger(count) && count > 0))
}

async function inParts<Item, Result>(items: readonly Item[], read: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += AT_A_TIME) {
    results.push(...(await Promise.all(items.slice(at, at + AT_A_TIME).map(read))))
  }
  return results
}
