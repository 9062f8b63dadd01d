import { emitWarning } from '@sluice/core/internal'

const AGAIN_MS = 60_000
/** When each console warned last of a function of the application, by that function. */
const warnedAt = new WeakMap<object, number>()

/** Tells the operator of the process why the console failed, which its caller is not told. */
export function warn(why: string): void {
  emitWarning('SLUICE_CONSOLE_FAILED', `console: ${why}`)
}

/** The same of a function of the application, once a minute: each request would warn. */
export function warnOf(of: object, option: string, why: string): void {
  const now = performance.now()
  if (now - (warnedAt.get(of) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return
  warnedAt.set(of, now)
  warn(`${option} failed: ${why}`)
}
