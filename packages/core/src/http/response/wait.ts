import { isOver, type RawResponse } from '../../request/context.js'
import { pause } from '../../util/pause.js'
import { listenTo } from './shared-listener.js'

/** Waits, unless the client leaves first. Resolves to whether it is still connected. */
export async function waitWithClient(response: RawResponse, ms: number): Promise<boolean> {
  const until = performance.now() + ms
  let hasLeft = isOver(response)
  // A pause ends early when the client leaves, or because timers have a maximum.
  for (let left = ms; left > 0 && !hasLeft; left = until - performance.now()) {
    await pause(left, undefined, (wake) => {
      return listenTo(response, 'close', () => {
        hasLeft = true
        wake()
      })
    })
  }
  return !hasLeft
}
