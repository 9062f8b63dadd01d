/** Silence is as many looks in a row, after a first one, between which nothing was observed. */
const LOOKS = 5

/**
 * Calls back when replies are due and nothing has come for `silenceMs`, or up to a fifth longer: a connection can be dead and stay
 * open. Looks now and then, as a timer with every reply would cost more than the reply.
 *
 * @param observed differs once something was observed; undefined while nothing is due
 * @returns what begins to look; call it when something becomes due
 */
export function silenceWatch(
  silenceMs: number,
  observed: () => number | string | undefined,
  onSilence: (error: Error) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined
  let last: number | string | undefined
  // Looks are counted, not time: while the event loop is blocked nothing can be read.
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
