import { createHmac } from 'node:crypto'
import { invalidPolicy, neverBeside, SluiceError } from '../../util/errors.js'
import { shareOf } from '../../util/hash.js'
import { FORMS, type Use } from '../../util/option-hints.js'
import { knownOptions, oneOf } from '../../util/validate.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'

/** The keys for which a limiter is enforced, and the headers that other requests get. */
export interface EnforceOptions {
  /**
   * `'report'` decides and charges, but enforces nothing.
   *
   * Every request proceeds then, with a verdict that reports the decision and is marked `reported`. `body.max`, which
   * is no quota, is enforced all the same.
   * @default 'enforce'
   */
  readonly mode?: 'enforce' | 'report'
  /**
   * The percentage of keys for which the limiter is enforced; other keys are only reported. 0 to 100, with fractions.
   *
   * Only the policy name and the key choose them, so they are the same in every process and at every start. A key that
   * is enforced stays so when the share grows. Not beside `mode: 'report'`.
   * @default 100
   */
  readonly percent?: number
  /**
   * Beside `percent`: a secret text of 1 character or more that chooses these keys, in place of the policy's name.
   *
   * Without it, a client that knows the name can pick keys that are not enforced. Policies with one salt are enforced
   * for the same keys. Use the same in all processes.
   * @default none
   */
  readonly salt?: string
  /** Whether responses to requests that are only reported have quota headers. @default false */
  readonly headers?: boolean
}

const ENFORCE_OPTIONS = ['mode', 'percent', 'salt', 'headers'] as const

export interface EnforcementOptions {
  /** Whether and for which keys the limits are enforced: `{ mode: 'report' }`, `{ percent: 10, salt }`. @default all keys */
  readonly enforce?: EnforceOptions | Use<typeof FORMS.enforce, EnforceOptions>
}

/** The verdicts that are enforced. */
export interface Enforcement {
  /** Whether no verdict is enforced. */
  readonly onlyReports: boolean
  /** Whether every verdict is enforced. */
  readonly coversAll: boolean
  readonly covers: (verdict: Verdict) => boolean
  readonly showsQuota: (verdict: Verdict) => boolean
}

/** @throws SluiceError `INVALID_POLICY` */
export function enforcementBy(ofPolicy: string, policy: string, { enforce = {} }: EnforcementOptions): Enforcement {
  const where = `${ofPolicy}: enforce`
  knownOptions(where, enforce, ENFORCE_OPTIONS, {}, FORMS.enforce)
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
    // The value is not shown: it is a secret.
    throw new SluiceError('INVALID_POLICY', `${where}: salt: expected a string of 1 character or more`)
  }
  if (typeof headers !== 'boolean') invalidPolicy(where, 'headers', 'true or false', headers)
  const isCovered = ({ [DECISION]: { request } }: Verdict) => {
    const key = request.identities.join('\n')
    const at = salt === undefined ? shareOf(`${policy}\n${key}`) : saltedShare(salt, key)
    return at * 100 < percent
  }
  return {
    onlyReports: percent === 0,
    coversAll: percent === 100,
    covers: (verdict) => percent === 100 || (percent > 0 && isCovered(verdict)),
    showsQuota: ({ reported }) => !reported || headers,
  }
}

/** A share like that of `shareOf`, which a client could predict from the keys that it has tried. */
function saltedShare(salt: string, text: string): number {
  return createHmac('sha256', salt).update(text).digest().readUIntBE(0, 6) / 2 ** 48
}
