import type { RawResponse } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'
import { PROCESS_TIMING, type Timing } from '../../util/timing.js'

/** The time in which a request waits: that of the process, unless a simulation plays it. */
export function timingOf(response: RawResponse): Timing {
  return (propertyOf(response, 'timing') as Timing | undefined) ?? PROCESS_TIMING
}
