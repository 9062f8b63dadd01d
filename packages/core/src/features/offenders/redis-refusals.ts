import { unreadable } from '../../redis/scripts/reply-reader.js'
import { run } from '../../redis/scripts/run.js'
import { refusalsScript, refusalsSliceScript } from '../../redis/scripts/scripts.generated.js'
import type { RedisBase } from '../../redis/slots/base.js'
import type { OffendersWindow } from '../../store/offenders.js'
import { KEPT, type RefusalCounts, type RefusalSlice, type RefusalSlices, SLICES, WINDOWS } from './refusal-log.js'

export interface RedisRefusalsOptions extends RedisBase {
  readonly now: () => number
}

/** The refusals of identities by all processes, in Redis. */
export class RedisRefusals implements RefusalSlices {
  /** The start of all keys. In a cluster, they are on one master. */
  readonly start: string
  readonly now: () => number
  readonly #base: RedisBase

  constructor(options: RedisRefusalsOptions) {
    this.start = `${options.prefix}{refusals}:`
    this.now = options.now
    this.#base = options
  }

  async add({ policy, counts, refusals, error }: RefusalCounts): Promise<void> {
    const now = this.now()
    const windows = Object.entries(WINDOWS) as [OffendersWindow, number][]
    await run(this.#base.connection, this.#base.timeoutMs, refusalsScript, () => ({
      keys: windows.flatMap(([window, ms]) => this.#keys(policy, window, Math.floor((now * SLICES) / ms))),
      args: [
        String(KEPT),
        String(refusals),
        String(error),
        ...windows.map(([, ms]) => String(Math.ceil((ms * (SLICES + 2)) / SLICES))),
        ...counts.flatMap(([identity, count]) => [identity, String(count)]),
      ],
    }))
  }

  async read(policy: string, window: OffendersWindow, slice: number): Promise<RefusalSlice> {
    const reply = await run(this.#base.connection, this.#base.timeoutMs, refusalsSliceScript, () => ({
      keys: this.#keys(policy, window, slice),
      args: [],
    }))
    if (!Array.isArray(reply)) throw unreadable('expected refusals')
    const [refusals, error, ...texts] = reply.map(String)
    const counts: [string, number][] = []
    for (let i = 0; i + 1 < texts.length; i += 2) counts.push([texts[i] as string, Number(texts[i + 1])])
    return { counts, refusals: Number(refusals), error: Number(error) }
  }

  #keys(policy: string, window: string, slice: number): [string, string] {
    const key = `${this.start}${policy}:${window}:${slice}`
    return [key, `${key}:sums`]
  }
}
