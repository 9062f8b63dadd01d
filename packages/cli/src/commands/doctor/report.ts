import type { Finding, Severity } from './finding.js'

/** The kind of a report about the proxies before an application. */
export const PROXIES = 'proxies'

/** The output of `sluice doctor --json`. */
export interface DoctorReport {
  /** The worst severity of all findings. */
  readonly status: Severity
  /** The address of Redis without credentials, or that of the route behind proxies without its query. */
  readonly target: string
  /** The topology of Redis, or `proxies`. Undefined if Redis could not be reached. */
  readonly kind?: string
  /** The servers that hold keys, as `host:port`. */
  readonly nodes: readonly string[]
  /** RFC 3339, by the clock of this machine. */
  readonly lookedAt: string
  /** The duration, in ms. */
  readonly tookMs: number
  readonly findings: readonly Finding[]
}

/** The exit codes of the command. */
export const EXIT_CODES: Readonly<Record<Severity, number>> = { ok: 0, warning: 1, error: 2 }
