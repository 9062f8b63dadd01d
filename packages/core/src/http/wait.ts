import { pause } from '../pause.js'
import { isOver, type RawResponse } from './context.js'

/** Waits, unless the client leaves first. Resolves to whether it is still there. */
export async function waitWithClient(response: RawResponse, ms: number): Promise<boolean> {
  const until = performance.now() + ms
  // A pause may end early: by the client leaving, or because no timer is that long.
  for (let left = ms; left > 0 && !isOver(response); left = until - performance.now()) {
    await pause(left, undefined, (wake) => {
      response.on('close', wake)
      return () => response.removeListener('close', wake)
    })
  }
  return !isOver(response)
}
