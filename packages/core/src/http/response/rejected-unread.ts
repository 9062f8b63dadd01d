import type { RawResponse } from '../../request/context.js'

const rejectedUnread = new WeakSet<object>()

/** Notes that 413 was sent in place of a handler that had not begun to read the body. */
export function noteRejectedUnread(response: RawResponse): void {
  rejectedUnread.add(response)
}

/** Whether 413 was sent in place of a handler that had not begun to read the body, and may still work. */
export function wasRejectedUnread(response: RawResponse): boolean {
  return rejectedUnread.has(response)
}
