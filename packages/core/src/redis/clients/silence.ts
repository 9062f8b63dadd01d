/** Number of consecutive checks without a change, after a first one, that count as silence. */
const LOOKS = 5

/**
 * Calls back when replies are due and nothing has arrived for `silenceMs`, or up to a fifth longer, as a dead
 * connection can stay open. Checks at intervals, as a timer per reply would cost more than the reply.
 *
 * @param observed returns a different value once something arrives; undefined while nothing is due
 * @returns a function that starts the checks; call it when a reply becomes due
 */
export function silenceWatch(
  silenceMs: number,
  observed: () => number | string | undefined,
  onSilence: (error: Error) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined
  let last: number | string | undefined
  // Checks are counted instead of time: nothing can be read while the event loop is blocked.
  let quietLooks = 0
  const look = () => {
    timer = undefined
    const now = observed()
    quietLooks = now === last ? quietLooks + 1 : 0
    last = now
    if (now === undefined) return
    if (quietLooks < LOOKS) watch()
    else onSilence(new Error(`no reply for ${silenceMs} ms`))
  }
  const watch = () => {
    if (!timer) timer = setTimeout(look, silenceMs / LOOKS).unref()
  }
  return watch
}
