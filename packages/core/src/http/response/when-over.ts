import { isOver, type RawResponse } from '../../request/context.js'

/** Calls back once, when all is sent or the client has left; at once where that is so already. */
export function whenOver(response: RawResponse, listener: () => void): void {
  if (isOver(response)) {
    listener()
    return
  }
  const over = () => {
    response.removeListener('finish', over)
    response.removeListener('close', over)
    listener()
  }
  // An answer that is sent emits both, one that is cut off only `close`.
  response.on('finish', over)
  response.on('close', over)
}
