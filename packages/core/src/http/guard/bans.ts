import type { BanKeeper } from '../../limiter/bans.js'
import type { Engine } from '../../limiter/engine.js'
import { hasOpenProxy } from '../../limiter/open-proxy.js'
import type { PolicyOptions } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { DECISION, isBarred, type Verdict } from '../../verdict/verdict.js'
import { COUNTS, type CountFunction, withoutErrors } from '../charging/counting.js'
import { isDisabled } from '../response/disabled-response.js'
import { whenOver } from '../response/when-over.js'
import type { Trap } from './trap.js'

/** Which outcomes are strikes: a status, `'failure'` (4xx but 429), or a function. */
export type BanCountOption = number | 'failure' | CountFunction

declare module '../../policy/ban.js' {
  interface BanOptions<Subject> {
    /**
     * Which outcomes are strikes, by the status of the response to an admitted request: a status such as `401`, `'failure'` (4xx
     * but 429), or a function `(status, verdict, context)` that returns whether it is one. Refusals are none then. A request whose
     * client leaves before the response is none. @default refusals are strikes
     */
    readonly count?: BanCountOption
    /** Paths that only probes ask for: `trap(['/wp-login.php', '/.env'])`. A request for one is a strike. @default none */
    readonly trap?: Trap
  }
}

interface BanParts<Request> {
  readonly where: string
  readonly engine: Engine<Request>
  readonly keeper: BanKeeper<Request>
  /** Whether the store strikes with the decision, where the address is not forgeable. */
  readonly atOnce: boolean
  /** Whether addresses are banned. */
  readonly byAddress: boolean
  readonly count: CountFunction | undefined
  readonly trap: Trap | undefined
  readonly warnings: Warnings<LimiterWarning>
}

/** How the requests of a limiter are struck, beside what the store strikes by itself. */
export class RequestBans<Request> {
  readonly #by: BanParts<Request>
  /** Apps whose setting was warned of. */
  readonly #openApps = new WeakSet<object>()

  constructor(by: BanParts<Request>) {
    this.#by = by
  }

  /** Whether the store strikes with the decision. */
  strikesAtOnce(context: HttpContext<Request>): boolean {
    return this.#by.atOnce && !this.#isForgeable(context)
  }

  /** Strikes for a refusal that has become final. Undefined where the store has done so, and for what is no strike. */
  strike(context: HttpContext<Request>, refusal: Verdict): Promise<Verdict> | undefined {
    const { atOnce, count, keeper } = this.#by
    if (atOnce || count || refusal.reason !== 'limited' || this.#isForgeable(context)) return undefined
    return keeper.strikeRefusal(refusal)
  }

  /** Strikes for a response that is cut: its request had been admitted. */
  strikeLater(context: HttpContext<Request>, refusal: Verdict): void {
    if (this.#by.count || this.#isForgeable(context)) return
    // Where the store is away, the strike is one of this process.
    this.#by.keeper.strikeRefusal(refusal).catch(() => {})
  }

  /**
   * Whether a trap catches a request. Asked before anything is charged.
   *
   * @throws RequestFault where its path cannot be read
   */
  catches(context: HttpContext<Request>): boolean {
    return this.#by.trap?.catches(context) === true
  }

  /** Strikes for a request that a trap catches. The verdict is that of a ban where one holds; undefined for one that is no strike. */
  strikeTrapped(context: HttpContext<Request>, verdict: Verdict): Promise<Verdict> | undefined {
    const { trap, keeper, engine } = this.#by
    if (!trap || isBarred(verdict) || this.#isForgeable(context)) return undefined
    return keeper.strikeCaught(verdict, trap).then(async (last) => {
      // It is refused by the ban now: what it was charged before is refunded, and permits are released.
      if (last !== verdict && verdict.allowed) await engine.charges.refund(verdict[DECISION])
      return last
    })
  }

  /** Strikes for the outcome of an admitted request, once that is known, if it is one that counts. */
  countLater(context: HttpContext<Request>, verdict: Verdict): void {
    const { count, keeper } = this.#by
    // Allowed clients get no strikes.
    if (!count || verdict.kind === 'listed' || this.#isForgeable(context)) return
    const { response } = context
    whenOver(response, () => {
      const { statusCode } = response
      if (!response.headersSent || statusCode === undefined || isDisabled(response)) return
      // Where the store is away, the strike is one of this process.
      if (count(statusCode, verdict, context)) keeper.strikeOutcome(verdict).catch(() => {})
    })
  }

  /** Whether any client can choose the address that would be banned, and so have others banned. Then no address is banned. */
  #isForgeable(context: HttpContext<Request>): boolean {
    const { byAddress, warnings, where } = this.#by
    if (!byAddress) return false
    return hasOpenProxy(context.proxyTrust, this.#openApps, ({ everyone, remedy }) =>
      warnings.emit(
        'SLUICE_BAN_OPEN_PROXY',
        `${where}: ban: no address is banned, as ${everyone} trusts X-Forwarded-For from everyone and any client ` +
          `could have others banned; ${remedy}`,
      ),
    )
  }
}

/** @throws SluiceError `INVALID_POLICY` */
export function bansFor<Request>(
  where: string,
  options: PolicyOptions<Request>,
  engine: Engine<Request>,
  warnings: Warnings<LimiterWarning>,
  atOnce: boolean,
): RequestBans<Request> | undefined {
  const { bans: keeper } = engine
  if (!keeper) return undefined
  const count = banCount(where, options.ban?.count, warnings)
  const trap = options.ban?.trap
  if (trap !== undefined && typeof trap?.catches !== 'function') invalidPolicy(where, 'ban: trap', 'trap([…])', trap)
  const byAddress = engine.policy.all.some(({ ban }) => ban?.by.split('+').includes('ip'))
  return new RequestBans({ where, engine, keeper, atOnce: atOnce && !count, byAddress, count, trap, warnings })
}

/** Which outcomes are strikes: one that is not known is none. */
function banCount(where: string, option: unknown, warnings: Warnings<LimiterWarning>): CountFunction | undefined {
  if (option === undefined) return undefined
  if (option === 'failure') return COUNTS.failure
  if (Number.isInteger(option) && (option as number) >= 100 && (option as number) <= 599) {
    return (status) => status === option
  }
  if (typeof option !== 'function') {
    return invalidPolicy(where, 'ban: count', 'a status such as 401, "failure", or a function', option)
  }
  const failed = (what: string) => {
    warnings.emit('SLUICE_COUNT_FAILED', `${where}: ban: count: ${what}; the request is no strike`)
    return false
  }
  return withoutErrors(option as CountFunction, failed)
}
