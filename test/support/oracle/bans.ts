/** The terms of a ban in ms, as a test states them. */
export interface BanSpec {
  readonly after: number
  readonly withinMs: number
  readonly ladderMs: readonly number[]
  readonly forgetAfterMs: number
}

export interface OracleBan {
  readonly rung: number
  readonly strikes: number
  readonly until: number
}

/**
 * The strikes and bans of one identity as documented, counted from the start each time. Shares no code with the
 * library.
 */
export class BanOracle {
  readonly #spec: BanSpec
  /** Strikes since the last ban. */
  #strikes: { at: number; weight: number }[] = []
  /** Bans since the ladder was last forgotten. */
  #bans = 0
  /** When the last strike was, or the last ban ended. */
  #lastSign = Number.NEGATIVE_INFINITY
  #ban: OracleBan | undefined

  constructor(spec: BanSpec) {
    this.#spec = spec
  }

  /** The ban that holds. */
  holds(now: number): OracleBan | undefined {
    return this.#ban && this.#ban.until > now ? this.#ban : undefined
  }

  /** Returns the ban that holds after the strike. */
  strike(now: number, weight: number, jitterMs = 0): OracleBan | undefined {
    if (this.holds(now)) return this.holds(now)
    const { after, withinMs, ladderMs, forgetAfterMs } = this.#spec
    const newest = Math.max(...this.#strikes.map(({ at }) => at), Number.NEGATIVE_INFINITY)
    const isBack = newest > now
    // Time stands still until a clock that stepped back has caught up, by up to a window; beyond that, strikes count
    // from now.
    const at = isBack && newest - now <= withinMs ? newest : now
    this.#strikes = this.#strikes.map((strike) => ({ ...strike, at: Math.min(strike.at, at) }))
    if (at >= this.#lastSign + forgetAfterMs) this.#bans = 0
    this.#strikes.push({ at, weight })
    const counted = this.#strikes.filter((strike) => strike.at > at - withinMs)
    // Strikes that have lapsed stay lapsed, however far back the clock steps.
    this.#strikes = counted
    const strikes = counted.reduce((sum, strike) => sum + strike.weight, 0)
    if (strikes < after) {
      this.#lastSign = this.#bans > 0 ? Math.max(this.#lastSign, at) : at
      return undefined
    }
    const step = Math.min(this.#bans, ladderMs.length - 1)
    this.#bans++
    this.#strikes = []
    this.#ban = { rung: step + 1, strikes, until: now + (ladderMs[step] as number) + jitterMs }
    this.#lastSign = this.#ban.until
    return this.#ban
  }

  /** A reset clears only strikes. */
  reset(): void {
    this.#strikes = []
  }

  /** A block replaces the ban. */
  block(): void {
    this.#ban = undefined
  }

  unblock(): void {
    this.#strikes = []
    this.#bans = 0
    this.#lastSign = Number.NEGATIVE_INFINITY
    this.#ban = undefined
  }
}
