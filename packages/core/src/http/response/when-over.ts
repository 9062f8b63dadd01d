import { isOver, type RawResponse } from '../../request/context.js'
import { listenTo } from './shared-listener.js'

/** Calls back once, when the response is sent or the client has left; at once where that is so already. */
export function whenOver(response: RawResponse, listener: () => void): void {
  if (isOver(response)) {
    listener()
    return
  }
  const over = () => {
    ignoreFinish()
    ignoreClose()
    listener()
  }
  // A response that is sent emits both, an aborted one only `close`.
  const ignoreFinish = listenTo(response, 'finish', over)
  const ignoreClose = listenTo(response, 'close', over)
}
