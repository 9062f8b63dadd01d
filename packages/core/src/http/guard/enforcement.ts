import { createHmac } from 'node:crypto'
import { invalidPolicy, neverBeside, SluiceError } from '../../util/errors.js'
import { shareOf } from '../../util/hash.js'
import { knownOptions, oneOf } from '../../util/validate.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'

/** The keys for which a limiter is enforced, and what the others see of it. */
export interface EnforceOptions {
  /**
   * `report` decides and charges, and acts on nothing: every request goes on, with a verdict that reports
   * the decision and is marked `reported`. `body.max`, which is no limit of quota, holds all the same.
   * @default 'enforce'
   */
  readonly mode?: 'enforce' | 'report'
  /**
   * For how many of 100 keys the limiter is enforced, the others being reported on: 0 to 100, with
   * fractions. Policy name and key alone choose them, so they are the same in every process and
   * at every start, and a key that is enforced stays so when the share grows. Not beside `mode: 'report'`. @default 100
   */
  readonly percent?: number
  /**
   * Beside `percent`: a secret text of 1 character or more that chooses these keys, in place of the policy's name. Without one,
   * a client that knows the name can pick keys that are left out. Policies of one salt are enforced for the same keys. Equal
   * in all processes. @default none
   */
  readonly salt?: string
  /** Whether responses to requests that are only reported on have quota headers. @default false */
  readonly headers?: boolean
}

const ENFORCE_OPTIONS = ['mode', 'percent', 'salt', 'headers'] as const

export interface EnforcementOptions {
  /** Whether and for which keys the limits are enforced: `{ mode: 'report' }`, `{ percent: 10, salt }`. @default all keys */
  readonly enforce?: EnforceOptions
}

/** Whose verdicts are acted on. */
export class Enforcement {
  readonly #policy: string
  readonly #percent: number
  readonly #salt: string | undefined
  readonly #showsQuota: boolean

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(ofPolicy: string, policy: string, { enforce = {} }: EnforcementOptions) {
    const where = `${ofPolicy}: enforce`
    knownOptions(where, enforce, ENFORCE_OPTIONS)
    const { mode = 'enforce', salt, headers = false } = enforce
    const reports = oneOf(where, 'mode', mode, ['enforce', 'report']) === 'report'
    if (reports && enforce.percent !== undefined) neverBeside(where, 'percent', 'mode "report"', enforce.percent)
    const { percent = reports ? 0 : 100 } = enforce
    if (typeof percent !== 'number' || !(percent >= 0 && percent <= 100)) {
      invalidPolicy(where, 'percent', 'a number from 0 to 100', percent)
    }
    if (salt !== undefined && enforce.percent === undefined) {
      throw new SluiceError('INVALID_POLICY', `${where}: salt: expected none without percent`)
    }
    if (salt !== undefined && (typeof salt !== 'string' || salt === '')) {
      // Not shown: it is a secret.
      throw new SluiceError('INVALID_POLICY', `${where}: salt: expected a string of 1 character or more`)
    }
    if (typeof headers !== 'boolean') invalidPolicy(where, 'headers', 'true or false', headers)
    this.#policy = policy
    this.#percent = percent
    this.#salt = salt
    this.#showsQuota = headers
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
