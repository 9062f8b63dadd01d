import type * as inPermits from '../../../packages/core/src/http/permits.js'
import type * as acrossSlots from '../../../packages/core/src/redis/across-slots.js'
import type * as inBreaker from '../../../packages/core/src/redis/breaker.js'
import type * as inLeases from '../../../packages/core/src/redis/leases.js'
import type * as inWarnings from '../../../packages/core/src/redis/outage-warnings.js'
import type * as port from '../../../packages/core/src/store.js'

/** Parts that users cannot import, of the packages' source or, with SLUICE_TEST=built, of the build. */
const from = process.env.SLUICE_TEST === 'built' ? 'dist' : 'src'

async function inside<Module>(path: string): Promise<Module> {
  return import(/* @vite-ignore */ new URL(`../../../packages/core/${from}/${path}`, import.meta.url).pathname)
}

const extension = from === 'dist' ? 'js' : 'ts'

export const { decideAcrossSlots } = await inside<typeof acrossSlots>(`redis/across-slots.${extension}`)
export const { Breaker } = await inside<typeof inBreaker>(`redis/breaker.${extension}`)
export const { OutageWarnings } = await inside<typeof inWarnings>(`redis/outage-warnings.${extension}`)
export const { Leases } = await inside<typeof inLeases>(`redis/leases.${extension}`)
export const { CONSUME, PEEK, CHARGE, REFUND, RELEASE, RENEW } = await inside<typeof port>(`store.${extension}`)
export const { Permits } = await inside<typeof inPermits>(`http/permits.${extension}`)
