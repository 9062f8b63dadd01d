import type { OutboundEvent } from '@sluice/core'
import { everywhere } from '@sluice/core/internal'
import type { Quota } from './quota/quota-types.js'

/** Tells listeners what became of a request. */
export function announce(policy: string, outcome: OutboundEvent['outcome'], quota?: Quota): void {
  if (!everywhere.hasListeners('outbound')) return
  const { holdMs = 0, limits = [] } = quota ?? {}
  everywhere.send('outbound', { policy, outcome, holdMs, limits } satisfies OutboundEvent)
}
