import type { Finding, Severity } from './finding.js'

/** The output of `sluice doctor --json`. */
export interface DoctorReport {
  /** The worst severity of all findings. */
  readonly status: Severity
  /** The address of Redis, without credentials. */
  readonly target: string
  /** The topology of Redis. Undefined where it could not be reached. */
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
