import {
  type BanTerms,
  EVERY_POLICY,
  isImpossible,
  PEEK,
  refusalBy,
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
} from '../../store/store.js'
import type { Outbox } from '../batching/outbox.js'
import type { MirroredBlocks } from '../blocks/mirrored-blocks.js'
import { confirmedBlock } from '../layers/block-checks.js'
import { strikeResult } from '../scripts/decode.js'
import { termsText } from '../scripts/encode.js'
import { blockSuffix, keyStart, strikesSuffix } from '../scripts/keys.js'
import { run } from '../scripts/run.js'
import { strikeScript } from '../scripts/scripts.generated.js'
import type { RedisBase } from '../slots/base.js'
import type { Changes } from './changes.js'

export interface StrikesOptions extends RedisBase {
  readonly outbox: Outbox
  readonly mirrored: MirroredBlocks
  readonly changes: Changes
}

/** Clears strikes. */
export const FORGIVEN: Strike = { weight: 0, jitterMs: 0, reason: '' }

/** Strikes made apart from a decision's script. A strike without a reply may have happened. */
export class Strikes {
  readonly #options: StrikesOptions

  constructor(options: StrikesOptions) {
    this.#options = options
  }

  async strike(terms: BanTerms, identity: string, strike: Strike): Promise<StrikeResult> {
    const { connection, prefix, timeoutMs, clock, marker, slots, outbox, mirrored, changes } = this.#options
    const { policy, scope } = terms
    const question = { plan: { policy, banningPolicy: scope }, identities: [identity] }
    // Blocked networks have no keys in Redis: only processes know them.
    const known = strike.weight > 0 ? await confirmedBlock(this.#options, question) : undefined
    if (known) return mirrored.report(known.entry)
    const start = keyStart(prefix, identity)
    const blockKeys = [...new Set([policy, scope, EVERY_POLICY])].map((name) => start + blockSuffix(name))
    const keys = [start + strikesSuffix(scope), ...blockKeys]
    slots.requireServer(identity)
    if (marker !== undefined) keys.push(marker)
    outbox.flush()
    const reply = await run(connection, timeoutMs, strikeScript, () => ({
      keys,
      args: [
        clock ? String(clock()) : '',
        String(strike.weight),
        String(strike.jitterMs),
        strike.reason,
        String(blockKeys.length),
        ...termsText(terms),
      ],
    }))
    const result = strikeResult(reply)
    if (result.block?.hasBegun) mirrored.began(terms, identity, result.now, result.block)
    // Earlier refusals must not be repeated.
    if (result.block) changes.note({ kind: 'ban', policy: scope, identity })
    return result
  }

  /** Strikes for a refusal if the plan bans. The refusal stands if that fails. */
  async after(request: StoreRequest, result: StoreResult): Promise<StoreResult> {
    const { ban } = request.plan
    if (!ban || result.allowed || result.block || request.op === PEEK || isImpossible(request)) return result
    try {
      const identity = request.identities[ban.identity] as string
      const strike = { weight: 1, jitterMs: request.strike as number, reason: '' }
      const { now, block } = await this.strike(ban, identity, strike)
      return block ? refusalBy(block, now) : result
    } catch {
      return result
    }
  }
}
