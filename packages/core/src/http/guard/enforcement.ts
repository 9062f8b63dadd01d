import { createHmac } from 'node:crypto'
import { invalidPolicy, neverBeside, SluiceError } from '../../util/errors.js'
import { shareOf } from '../../util/hash.js'
import { oneOf } from '../../util/validate.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'

export interface EnforcementOptions {
  /**
   * `report` decides and charges, and acts on nothing: every request goes on, with a verdict that says
   * what would have been and is marked `reported`. `maxBodyBytes`, which is no limit of quota, holds all the same.
   * @default 'enforce'
   */
  readonly mode?: 'enforce' | 'report'
  /**
   * For how many of 100 keys the limiter is enforced, the others being reported on: 0 to 100, with
   * fractions. Which they are is a matter of policy name and key alone, the same in every process and
   * at every start, and a key that is enforced stays so when the share grows. @default 100
   */
  readonly enforcePercent?: number
  /**
   * Beside `enforcePercent`: a secret text that says which keys those are, in place of the policy's name. Without one,
   * a client that knows the name can pick keys that are left out. Policies of one salt are enforced for the same keys. Equal
   * in all processes. @default none
   */
  readonly enforceSalt?: string
  /** Whether responses to requests that are only reported on have quota headers. @default false */
  readonly reportHeaders?: boolean
}

/** Whose verdicts are acted on. */
export class Enforcement {
  readonly #policy: string
  readonly #percent: number
  readonly #salt: string | undefined
  readonly #showsQuota: boolean

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(where: string, policy: string, options: EnforcementOptions) {
    const { mode = 'enforce', enforcePercent, enforceSalt, reportHeaders = false } = options
    const reports = oneOf(where, 'mode', mode, ['enforce', 'report']) === 'report'
    if (reports && enforcePercent !== undefined) {
      neverBeside(where, 'enforcePercent', 'mode "report"', enforcePercent)
    }
    const percent = enforcePercent === undefined ? (reports ? 0 : 100) : enforcePercent
    if (typeof percent !== 'number' || !(percent >= 0 && percent <= 100)) {
      invalidPolicy(where, 'enforcePercent', 'a number from 0 to 100', percent)
    }
    if (enforceSalt !== undefined && enforcePercent === undefined) {
      throw new SluiceError('INVALID_POLICY', `${where}: enforceSalt: expected none without enforcePercent`)
    }
    if (enforceSalt !== undefined && (typeof enforceSalt !== 'string' || enforceSalt === '')) {
      // Not shown: it is a secret.
      throw new SluiceError('INVALID_POLICY', `${where}: enforceSalt: expected a string of 1 character or more`)
    }
    if (typeof reportHeaders !== 'boolean') invalidPolicy(where, 'reportHeaders', 'true or false', reportHeaders)
    this.#policy = policy
    this.#percent = percent
    this.#salt = enforceSalt
    this.#showsQuota = reportHeaders
  }

  /** Whether no verdict is acted on. */
  get onlyReports(): boolean {
    return this.#percent === 0
  }

  /** Whether every verdict is acted on. */
  get coversAll(): boolean {
    return this.#percent === 100
  }

  covers(verdict: Verdict): boolean {
    if (this.#percent === 100) return true
    if (this.#percent === 0) return false
    const key = verdict[DECISION].request.identities.join('\n')
    const at = this.#salt === undefined ? shareOf(`${this.#policy}\n${key}`) : saltedShare(this.#salt, key)
    return at * 100 < this.#percent
  }

  showsQuota(verdict: Verdict): boolean {
    return !verdict.reported || this.#showsQuota
  }
}

/** As `shareOf`, of which a client could work out the rest from the keys that it has tried. */
function saltedShare(salt: string, text: string): number {
  return createHmac('sha256', salt).update(text).digest().readUIntBE(0, 6) / 2 ** 48
}
