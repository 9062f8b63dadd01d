import { isDisabled } from '../../http/response/disabled-response.js'
import { sentStatus, whenDecided } from '../../http/response/upgrade.js'
import type { Engine } from '../../limiter/engine.js'
import { hasOpenProxy } from '../../limiter/open-proxy.js'
import type { KnownRequest } from '../../policy/known-request.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { DECISION, isBarred, type Verdict } from '../../verdict/verdict.js'
import { type CountFunction, type CountOnly, countOptions, countsOnly } from '../outcomes/counting.js'
import { type BanOption, POLICY_BAN } from './ban-terms.js'
import { STRIKE_COUNTER, type StrikeCounter } from './strike-counter.js'
import type { Trap } from './trap.js'

/** The outcomes that are strikes. */
export interface BanCountOptions {
  readonly only: CountOnly
}

declare module './ban-terms.js' {
  interface BanOptions<Subject> {
    /**
     * The outcomes that are strikes, by the status of the response to an admitted request.
     *
     * `{ only: 401 }` takes each 401 for a strike; `only` has the forms of the limiter's own `count`. With this option,
     * refusals are no strikes. A request whose client leaves before the response is no strike either.
     * @default refusals are strikes
     */
    readonly count?: BanCountOptions
    /** Paths that only probes request: `trap(['/wp-login.php', '/.env'])`. A request for one is a strike. @default none */
    readonly trap?: Trap
  }
}

interface BanParts<Request> {
  readonly where: string
  readonly engine: Engine<Request>
  readonly counter: StrikeCounter<Request>
  /** Whether the store counts the strike with the decision, where the address cannot be forged. */
  readonly atOnce: boolean
  /** Whether addresses are banned. */
  readonly byAddress: boolean
  readonly count: CountFunction | undefined
  readonly trap: Trap | undefined
  readonly warnings: Warnings<LimiterWarning>
}

/** Counts strikes of a limiter's requests, except those that the store counts by itself. */
export class RequestBans<Request> {
  readonly #by: BanParts<Request>
  /** Apps whose setting has caused a warning. */
  readonly #openApps = new WeakSet<object>()

  constructor(by: BanParts<Request>) {
    this.#by = by
  }

  /** Whether the store counts the strike with the decision. */
  strikesAtOnce(context: HttpContext<Request>): boolean {
    return this.#by.atOnce && !isFromOtherSite(context) && !this.#isForgeable(context)
  }

  /** Counts the strike of a final refusal. Undefined if the store has counted it, or where it is no strike. */
  strike(context: HttpContext<Request>, refusal: Verdict): Promise<Verdict> | undefined {
    const { atOnce, count, counter } = this.#by
    const isRationed = isFromOtherSite(context)
    const isCounted = atOnce && !isRationed
    if (isCounted || count || refusal.reason !== 'limited' || this.#isForgeable(context)) return undefined
    return counter.strikeRefusal(refusal, isRationed)
  }

  /** Counts the strike of a response that is cut: its request had been admitted. */
  strikeLater(context: HttpContext<Request>, refusal: Verdict): void {
    if (this.#by.count || this.#isForgeable(context)) return
    // While the store is away, this process counts the strike.
    this.#by.counter.strikeRefusal(refusal, isFromOtherSite(context)).catch(() => {})
  }

  /**
   * Whether a trap catches a request. Called before anything is charged.
   *
   * @throws RequestFault where its path cannot be read
   */
  catches(context: HttpContext<Request>): boolean {
    return this.#by.trap?.catches(context) === true
  }

  /** Whether a trap has the path of a request. Its headers decide, which are not known. */
  mayCatch(known: KnownRequest): boolean {
    return known.path !== undefined && known.ask(() => this.catches(known.context)) !== false
  }

  /** Counts the strike of a request that a trap catches. The verdict is that of a ban in force; undefined if there is no strike. */
  strikeTrapped(context: HttpContext<Request>, verdict: Verdict): Promise<Verdict> | undefined {
    const { trap, counter, engine } = this.#by
    if (!trap || isBarred(verdict) || this.#isForgeable(context)) return undefined
    return counter.strikeCaught(verdict, trap).then(async (last) => {
      // The ban refuses it now: its earlier charge is refunded, and its permits are released.
      if (last !== verdict && verdict.allowed) await engine.charges.refund(verdict[DECISION])
      return last
    })
  }

  /** Counts the strike of an admitted request, once its outcome is known, if that is a strike. */
  countLater(context: HttpContext<Request>, verdict: Verdict): void {
    const { count, counter } = this.#by
    // Allowed clients get no strikes.
    if (!count || verdict.kind === 'listed' || this.#isForgeable(context)) return
    const { response } = context
    whenDecided(response, () => {
      const status = sentStatus(response)
      if (status === undefined || isDisabled(response)) return
      // While the store is away, this process counts the strike.
      if (count(status, verdict, context)) counter.strikeOutcome(verdict).catch(() => {})
    })
  }

  /** Whether a client can choose its address, and so have others banned. No address is banned then. */
  #isForgeable(context: HttpContext<Request>): boolean {
    const { byAddress, warnings, where } = this.#by
    if (!byAddress) return false
    return hasOpenProxy(context, this.#openApps, ({ everyone, remedy }) =>
      warnings.emit(
        'SLUICE_BAN_OPEN_PROXY',
        `${where}: ban: no address is banned, as ${everyone} trusts X-Forwarded-For from everyone and any client ` +
          `could have others banned; ${remedy}`,
      ),
    )
  }
}

/**
 * Whether a request says that it comes from another site, as that of an image there. Its viewers did not mean it: all of their
 * refused ones are one strike a minute, so that no page has them banned, and no script escapes by the same header.
 */
function isFromOtherSite(context: HttpContext<unknown>): boolean {
  const { method } = context
  return (method === 'GET' || method === 'HEAD') && context.header('sec-fetch-site') === 'cross-site'
}

/** @throws SluiceError `INVALID_POLICY` */
export function bansFor<Request>(
  where: string,
  options: BanOption<Request>,
  engine: Engine<Request>,
  warnings: Warnings<LimiterWarning>,
  atOnce: boolean,
): RequestBans<Request> | undefined {
  const counter = engine.parts.get(STRIKE_COUNTER)
  if (!counter) return undefined
  const count = banCount(where, options.ban?.count, warnings)
  const trap = options.ban?.trap
  if (trap !== undefined && typeof trap?.catches !== 'function') invalidPolicy(where, 'ban: trap', 'trap([…])', trap)
  const byAddress = engine.policy.all.some(({ parts }) => parts.get(POLICY_BAN)?.by.split('+').includes('ip'))
  return new RequestBans({ where, engine, counter, atOnce: atOnce && !count, byAddress, count, trap, warnings })
}

/** The outcomes that are strikes. An unknown outcome is none. */
function banCount(where: string, option: unknown, warnings: Warnings<LimiterWarning>): CountFunction | undefined {
  if (option === undefined) return undefined
  const { only } = countOptions<BanCountOptions>(where, 'ban: count', option, ['only'])
  const failed = (what: string) => {
    warnings.emit('SLUICE_COUNT_FAILED', `${where}: ban: count: ${what}; the request is no strike`)
    return false
  }
  return countsOnly(`${where}: ban: count`, only, failed)
}
