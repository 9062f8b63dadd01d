import type { ServerResponse } from 'node:http'
import type { RawResponse } from '../../request/context.js'
import type { Timer } from '../../util/timing.js'
import { addGate } from '../response/gated-response.js'
import { timingOf } from '../response/timing-of.js'

/** Interval of the slices: long enough to be cheap, short enough to look like a steady stream. */
const SLICE_EVERY_MS = 50

/** Slows a response down: after the first `after` bytes, `bytesPerSecond` leave. */
export function slowDown(response: ServerResponse, bytesPerSecond: number, after: number): void {
  const timing = timingOf(response as unknown as RawResponse)
  const sliceBytes = Math.max(1, Math.floor((bytesPerSecond * SLICE_EVERY_MS) / 1000))
  let free = after
  /** The time at which the next slice may leave; 0 before the first. */
  let dueAt = 0
  let timer: Timer | undefined

  const open = addGate(response, {
    room() {
      if (free > 0) return free
      const now = timing.now()
      if (now >= dueAt) return sliceBytes
      timer ??= timing.setTimeout(
        () => {
          timer = undefined
          open()
        },
        Math.max(1, dueAt - now),
      )
      return 0
    },
    passed(bytes) {
      if (free > 0) {
        free -= bytes
        return
      }
      const now = timing.now()
      // A late timer is compensated by one slice at most, and idle time is not saved up.
      dueAt = Math.max(dueAt || now, now - SLICE_EVERY_MS) + (bytes * 1000) / bytesPerSecond
    },
    closed: () => timing.clearTimeout(timer),
  })
}
