import { isOver, type RawResponse } from '../../request/context.js'
import { listenTo } from './shared-listener.js'

/**
 * Calls back once, when the response is sent or the client has left; at once if it has already. Never calls back after the
 * returned function was called.
 */
export function whenOver(response: RawResponse, listener: () => void): () => void {
  if (isOver(response)) {
    listener()
    return () => {}
  }
  const over = () => {
    ignore()
    listener()
  }
  // A response that is sent emits both, an aborted one only `close`.
  const ignored = [listenTo(response, 'finish', over), listenTo(response, 'close', over)]
  const ignore = () => {
    for (const listener of ignored) listener()
  }
  return ignore
}
