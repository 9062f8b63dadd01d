import { isOver, type RawResponse } from '../../request/context.js'
import { pause } from '../../util/pause.js'
import { listenTo } from './shared-listener.js'
import { timingOf } from './timing-of.js'

/** Waits, unless the client leaves first. Resolves to whether it is still connected. */
export async function waitWithClient(response: RawResponse, ms: number): Promise<boolean> {
  const timing = timingOf(response)
  const until = timing.now() + ms
  let hasLeft = isOver(response)
  // A pause ends early when the client leaves, or because timers have a maximum.
  for (let left = ms; left > 0 && !hasLeft; left = until - timing.now()) {
    const onWaker = (wake: () => void) =>
      listenTo(response, 'close', () => {
        hasLeft = true
        wake()
      })
    await pause(left, undefined, onWaker, timing)
  }
  return !hasLeft
}
