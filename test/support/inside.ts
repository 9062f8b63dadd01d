import type * as composed from '../../packages/core/src/features/composed.js'
import type * as inLeases from '../../packages/core/src/features/leases/leases.js'
import type * as inQueues from '../../packages/core/src/features/queues/limiter-queues.js'
import type * as inPermits from '../../packages/core/src/http/charging/permits.js'
import type * as inCharges from '../../packages/core/src/limiter/charge-ledger.js'
import type * as inCounts from '../../packages/core/src/metrics/counts.js'
import type * as inMetrics from '../../packages/core/src/metrics/policy-metrics.js'
import type * as inBreaker from '../../packages/core/src/redis/health/breaker.js'
import type * as inScripts from '../../packages/core/src/redis/scripts/scripts.generated.js'
import type * as acrossSlots from '../../packages/core/src/redis/slots/across-slots.js'
import type * as inWarnings from '../../packages/core/src/redis/warnings/outage-warnings.js'
import type * as port from '../../packages/core/src/store/store.js'
import type * as inFreezes from '../../packages/core/src/util/freezes.js'
import type * as inVerdict from '../../packages/core/src/verdict/verdict.js'

/** Internal parts of the packages, from their source: the build has them in one file with everything else. */
async function inside<Module>(path: string): Promise<Module> {
  return import(/* @vite-ignore */ new URL(`../../packages/core/src/${path}`, import.meta.url).pathname)
}

export const { makeLimiter } = await inside<typeof composed>('features/composed.ts')
const verdicts = await inside<typeof inVerdict>('verdict/verdict.ts')
export const { freezes } = await inside<typeof inFreezes>('util/freezes.ts')
export const { decideAcrossSlots } = await inside<typeof acrossSlots>('redis/slots/across-slots.ts')
export const { Breaker } = await inside<typeof inBreaker>('redis/health/breaker.ts')
export const { OutageWarnings } = await inside<typeof inWarnings>('redis/warnings/outage-warnings.ts')
export const { Leases } = await inside<typeof inLeases>('features/leases/leases.ts')
export const { CONSUME, PEEK, CHARGE, REFUND, RELEASE, RENEW, DEBIT } = await inside<typeof port>('store/store.ts')
export const { Counts } = await inside<typeof inCounts>('metrics/counts.ts')
export const { neededOf } = await inside<typeof inMetrics>('metrics/policy-metrics.ts')
export const { Permits } = await inside<typeof inPermits>('http/charging/permits.ts')
export const { QUEUES } = await inside<typeof inQueues>('features/queues/limiter-queues.ts')
export const { exchangeScript } = await inside<typeof inScripts>('redis/scripts/scripts.generated.ts')

export function decisionOf(verdict: inVerdict.Verdict): inVerdict.Verdict[typeof inVerdict.DECISION] {
  return verdict[verdicts.DECISION]
}

/** Settles the received bytes of a body, as a guard does under limits of bytes. On the source only. */
export function settleBytes(verdict: inVerdict.Verdict, received: number): Promise<boolean> {
  const decision = decisionOf(verdict)
  return (decision.by.charges as inCharges.ChargeLedger).settleBytes(decision, received)
}
