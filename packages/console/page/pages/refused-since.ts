/** The share of refusals from which it needs attention, and the share below which it does not. */
const HIGH_SHARE = 0.25
const LOW_SHARE = 0.2
/** Decisions a second from which a share says something. */
const ENOUGH_DECISIONS = 2
/** The least time for which a sentence stays, in ms: the page below it moves when it comes and goes. */
const LEAST_MS = 30_000

/**
 * Since when the share of refusals needs attention. Undefined: it does not.
 *
 * @param since the result for the second before
 * @param perSecond the figures of this second
 * @param now ms since 1970
 */
export function sinceOf(
  since: number | undefined,
  { decisions, refused }: { readonly decisions: number; readonly refused: number },
  now: number,
): number | undefined {
  const share = decisions < ENOUGH_DECISIONS ? 0 : refused / decisions
  if (since === undefined) return share >= HIGH_SHARE ? now : undefined
  return share < LOW_SHARE && now - since >= LEAST_MS ? undefined : since
}
