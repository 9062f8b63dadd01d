import type { LimiterWarning } from '../../util/warnings.js'

/** Of the set-up, which is one for all of them. */
const OF_SET_UP: ReadonlySet<LimiterWarning> = new Set([
  'SLUICE_BAN_OPEN_PROXY',
  'SLUICE_LIST_KIND',
  'SLUICE_NO_USER',
  'SLUICE_ONE_CLIENT',
  'SLUICE_OPEN_PROXY',
  'SLUICE_SAME_LIMITER_TWICE',
  'SLUICE_UNGROUPED_IPV6',
  'SLUICE_UNTRUSTED_PROXY',
])
/** Each guard warns of invalid requests once a minute. */
const AGAIN_MS = 60_000
const MOST_KEPT = 1000

/**
 * Says whether a warning is new among those of many guards that are made of the same options and see the same requests: what is
 * wrong with the set-up is reported once, and what is wrong with requests once a minute.
 */
export function warnedOnce(): (code: LimiterWarning, message: string) => boolean {
  const warnedAt = new Map<string, number>()
  return (code, message) => {
    if (!OF_SET_UP.has(code) && code !== 'SLUICE_INVALID_REQUEST') return true
    const text = `${code} ${message}`
    const now = performance.now()
    const last = warnedAt.get(text)
    if (last !== undefined && (OF_SET_UP.has(code) || now - last < AGAIN_MS)) return false
    if (warnedAt.size >= MOST_KEPT) warnedAt.clear()
    warnedAt.set(text, now)
    return true
  }
}
