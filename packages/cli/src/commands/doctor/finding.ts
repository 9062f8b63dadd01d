export type Severity = 'ok' | 'warning' | 'error'

/** One property that was checked. */
export interface Finding {
  /** The name of the check: `eviction`. */
  readonly check: string
  readonly severity: Severity
  /** One sentence. */
  readonly message: string
  /** The remedy. Undefined if nothing is to be done. */
  readonly advice?: string
  /** The Redis process that it concerns, as `host:port`. Undefined if it concerns all of them. */
  readonly node?: string
  /** The figures behind the sentence, for programs. */
  readonly data?: Readonly<Record<string, unknown>>
}

/** The result of a check, without the names of the check and the node. */
export type CheckResult = Omit<Finding, 'check' | 'node'>

export function ok(message: string, data?: Finding['data']): CheckResult {
  return { severity: 'ok', message, ...(data && { data }) }
}

export function warning(message: string, advice: string, data?: Finding['data']): CheckResult {
  return { severity: 'warning', message, advice, ...(data && { data }) }
}

export function error(message: string, advice: string, data?: Finding['data']): CheckResult {
  return { severity: 'error', message, advice, ...(data && { data }) }
}

/** The worst of them; ok if there are none. */
export function worstOf(findings: readonly Pick<Finding, 'severity'>[]): Severity {
  if (findings.some(({ severity }) => severity === 'error')) return 'error'
  return findings.some(({ severity }) => severity === 'warning') ? 'warning' : 'ok'
}
