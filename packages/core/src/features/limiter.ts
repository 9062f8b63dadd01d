import { BasicLimiter, INSIDE } from '../limiter/limiter.js'
import type { Units } from '../policy/costs.js'
import type { IdentityByKind, KeyValue } from '../store/identity.js'
import type { ChargeOutcome } from '../store/store.js'
import type { BanReport, Verdict } from '../verdict/verdict.js'
import type { BlockOptions, StrikeOptions } from './bans/block-options.js'
import { block, strike, unblock } from './bans/blocking.js'
import { chargesById } from './charges/charges-by-id.js'
import { acquire } from './queues/acquire.js'
import type { AcquireOptions } from './queues/acquire-options.js'

/** A limiter with the methods of all features. */
export class Limiter<Subject = string> extends BasicLimiter<Subject> {
  /**
   * Waits its turn and resolves when admitted. Among calls for one key, the higher `priority` is first, then clients in turn by
   * `fairBy`, then first in, first out. The order holds within this process, or with `sharedTurns` by priority across processes.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, when it can never succeed, or when `size`
   * calls wait. The signal's reason when aborted; a charge is refunded then.
   */
  // `async`, so that an invalid key rejects as in the other methods.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    return acquire(this[INSIDE], subject, options)
  }

  /**
   * Refunds the charge of an allowed verdict, once, less the units that time has already restored. Releases its permits too.
   * Resolves to whether this call refunded anything. During an outage, charges of the store are not
   * refunded, then or later.
   */
  override refund(subject: Subject, verdict: Verdict): Promise<boolean>
  /**
   * Refunds a charge by its `id`, in any process, as far as it is neither settled nor refunded. Releases its permits too. Safe to
   * repeat: after an error, call it again. See docs/charges.md.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`, after which it may be done in part; `INVALID_POLICY` without `charges`
   */
  override refund(id: string): Promise<ChargeOutcome>
  override async refund(subject: Subject | string, verdict?: Verdict): Promise<boolean | ChargeOutcome> {
    if (verdict === undefined && typeof subject === 'string') return this.#byId.refund(subject)
    return super.refund(subject as Subject, verdict as Verdict)
  }

  /** Equals `verdict.settle(actual)`. */
  override settle(verdict: Verdict, actual: number | Units): Promise<boolean>
  /**
   * Replaces the estimated cost of a charge with the actual one, by its `id`, in any process: each unit once. Safe to repeat.
   *
   * @throws SluiceError `INVALID_COST`; `STORE_UNAVAILABLE`, after which it may be done in part; `INVALID_POLICY` without `charges`
   */
  override settle(id: string, actual: number | Units): Promise<ChargeOutcome>
  override async settle(verdict: Verdict | string, actual: number | Units): Promise<boolean | ChargeOutcome> {
    return typeof verdict === 'string' ? this.#byId.settle(verdict, actual) : super.settle(verdict, actual)
  }

  /**
   * Releases the permits that a verdict took in `concurrency` limits; its other charges stay. A second
   * call releases nothing more. Without a verdict, as for a skipped request, it does nothing.
   */
  override release(verdict: Verdict | undefined): Promise<void>
  /**
   * Releases the permits of a charge by its `id`, in any process. Safe to repeat.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`; `INVALID_POLICY` without `charges`
   */
  override release(id: string): Promise<ChargeOutcome>
  override async release(verdict: Verdict | string | undefined): Promise<unknown> {
    return typeof verdict === 'string' ? this.#byId.release(verdict) : super.release(verdict)
  }

  /** Holds the permits of a verdict for another `ttl`. Permits already released or expired are not taken again. */
  override renew(verdict: Verdict): Promise<void>
  /**
   * Holds the permits of a charge for another `ttl` by its `id`, in any process, and its id for another `keep`. `unknown` where
   * permits have expired, too.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`; `INVALID_POLICY` without `charges`
   */
  override renew(id: string): Promise<ChargeOutcome>
  override async renew(verdict: Verdict | string): Promise<unknown> {
    return typeof verdict === 'string' ? this.#byId.renew(verdict) : super.renew(verdict)
  }

  /**
   * Refuses an identity, in every process that shares the store, until `for` from now. A second block replaces the first.
   * Where a policy groups addresses in several ways, the smallest group of an address is refused. A network of addresses is
   * refused as a whole; other processes refuse it within a second.
   *
   * @param identity by its kind, such as `{ ip: '192.0.2.7' }` or `{ ip: '192.0.2.0/24' }`; or its text, where the limiter counts one kind only
   * @throws SluiceError `INVALID_KEY`, which lists the kinds; `STORE_FULL` where a memory store has no room for
   * the block, or 100,000 networks are blocked on Redis;
   * `STORE_UNAVAILABLE`, after which the block may hold or not
   */
  async block(identity: KeyValue | IdentityByKind, options: BlockOptions): Promise<void> {
    return block(this[INSIDE], identity, options)
  }

  /**
   * Ends a block or ban before its time, also one by another policy where bans apply to the whole store. Forgets the strikes
   * and the rung, so the next ban is of the first rung.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async unblock(identity: KeyValue | IdentityByKind): Promise<void> {
    return unblock(this[INSIDE], identity)
  }

  /**
   * Strikes an identity for an offence that no limit sees, such as a request for a path that only probes request. The last
   * required strike starts the ban. While the identity is banned or blocked, strikes do not count. During an outage of
   * the store strikes stay in this process.
   *
   * @param identity of the kind that the policy bans, such as `{ ip: '192.0.2.7' }`; or its text, where it counts one kind only
   * @returns the ban that holds now, or undefined. Also undefined for an identity that is never banned, such as a private address
   * @throws SluiceError `INVALID_POLICY` where the policy has no `ban`, `INVALID_KEY` for another kind
   */
  async strike(identity: KeyValue | IdentityByKind, options: StrikeOptions = {}): Promise<BanReport | undefined> {
    return strike(this[INSIDE], identity, options)
  }

  get #byId() {
    return chargesById(this[INSIDE])
  }
}
