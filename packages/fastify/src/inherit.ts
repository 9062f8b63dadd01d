import type { FastifyRateLimitOptions } from './hook.js'

/**
 * The options of a route's limiter: its own, and the plugin's where it names none. What one of its own excludes
 * it does not take over, or it would be refused for an option that it never named.
 */
export function inherit(
  defaults: Partial<FastifyRateLimitOptions>,
  own: FastifyRateLimitOptions,
): FastifyRateLimitOptions {
  const { onUnavailable = 'local', share, mode, enforcePercent, count, maxBodyBytes } = own
  const excluded: Partial<Record<string, boolean>> = {
    share: onUnavailable !== 'local',
    onUnavailable: share !== undefined,
    enforcePercent: mode === 'report',
    enforceSalt: mode === 'report' || (Object.hasOwn(own, 'enforcePercent') && enforcePercent === undefined),
    mode: enforcePercent !== undefined,
    // Said to be none, it is not the plugin's either.
    maxWait: Object.hasOwn(own, 'count') && count === undefined,
    requireLength: Object.hasOwn(own, 'maxBodyBytes') && maxBodyBytes === undefined,
  } satisfies { [Option in keyof FastifyRateLimitOptions]: boolean }
  return { ...Object.fromEntries(Object.entries(defaults).filter(([option]) => !excluded[option])), ...own }
}
