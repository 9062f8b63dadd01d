import type { KeyedScripts } from '@sluice/core/internal'
import type { QuotaLook, QuotaOutcome, QuotaTaken, ToldLimit } from './kernel.js'
import { quotaScript } from './script.generated.js'

/** What a store says to a request. */
export interface SharedLook extends QuotaLook {
  /** Undefined where it has to wait. */
  readonly taken: QuotaTaken | undefined
  /** The requests of all processes so far. */
  readonly takenByAll: number
  /** The number of limits that the service has told. */
  readonly limits: number
}

/** The learned quota of a key that processes share, in Redis. */
export class SharedQuota {
  readonly #scripts: KeyedScripts
  readonly #key: { readonly identity: string; readonly policy: string; readonly part: 'quota' }

  constructor(scripts: KeyedScripts, policy: string, identity: string) {
    this.#scripts = scripts
    this.#key = { identity, policy, part: 'quota' }
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  async take(isEven: boolean): Promise<SharedLook> {
    const reply = await this.#scripts.run(quotaScript, this.#key, ['take', isEven ? '1' : '0'])
    const [at = 0, slot = 0, waitMs = 0, isFirst, intervalUs = 0, takenByAll = 0, limits = 0] = (
      reply as unknown[]
    ).map(Number)
    const taken = waitMs > 0 ? undefined : { slot, at }
    return { waitMs, isFirst: isFirst === 1, intervalUs, taken, takenByAll, limits }
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  async told({ slot, at }: QuotaTaken, outcome: QuotaOutcome, limits: readonly ToldLimit[]): Promise<void> {
    await this.#scripts.run(quotaScript, this.#key, [
      'told',
      String(slot),
      String(at),
      String(outcome),
      ...limits.flatMap(({ name, limit, remaining, resetAfterMs, isBucket }) => [
        encodeURIComponent(name),
        String(limit),
        String(remaining),
        String(resetAfterMs),
        isBucket ? '1' : '0',
      ]),
    ])
  }
}
