import { warnOfListener } from '@sluice/core/internal'

/** For errors of a function of the user that affect no request. Warns of the first one, as each request would repeat it. */
export function warnOnce(where: string, field: string): (error: unknown) => void {
  let hasWarned = false
  return (error) => {
    if (hasWarned) return
    hasWarned = true
    warnOfListener(`${where}: ${field}`, error)
  }
}
