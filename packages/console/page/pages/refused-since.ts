/** The share of refusals from which it needs attention, and the share below which it does not. */
const HIGH_SHARE = 0.25
const LOW_SHARE = 0.2
/** Decisions a second from which a share says something. */
const ENOUGH_DECISIONS = 2
/** The least time for which a sentence stays, in ms: the page below it moves when it comes and goes. */
const LEAST_MS = 30_000

/** A time of many refusals. */
export interface RefusedSince {
  /** Ms since 1970. */
  readonly at: number
  /** The share of refusals in the worst second since then. */
  readonly most: number
}

/**
 * Since when the share of refusals needs attention. Undefined: it does not.
 *
 * @param since the result for the second before
 * @param perSecond the figures of this second
 * @param now ms since 1970
 */
export function sinceOf(
  since: RefusedSince | undefined,
  { decisions, refused }: { readonly decisions: number; readonly refused: number },
  now: number,
): RefusedSince | undefined {
  const share = decisions < ENOUGH_DECISIONS ? 0 : refused / decisions
  if (since === undefined) return share >= HIGH_SHARE ? { at: now, most: share } : undefined
  if (share < LOW_SHARE && now - since.at >= LEAST_MS) return undefined
  return share > since.most ? { at: since.at, most: share } : since
}
