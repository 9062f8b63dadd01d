import { bytes, counted } from '@sluice/core/internal'
import { infoCheck } from '../check.js'
import { type CheckResult, error, ok, warning } from '../finding.js'

/** Share of maxmemory above which memory is soon used up. */
const NEARLY_FULL = 0.9

/**
 * Checks what happens when memory is full: a client that makes up identities may then push out counts and blocks, or stop all
 * writes.
 */
export const eviction = infoCheck('eviction', (info) => {
  const used = Number(info.used_memory)
  const maxBytes = Number(info.maxmemory ?? 0)
  const policy = info.maxmemory_policy ?? 'noeviction'
  const evicted = Number(info.evicted_keys ?? 0)
  const data = { usedBytes: used, maxBytes, policy, evictedKeys: evicted }
  if (maxBytes === 0) return [withoutMaximum(used, Number(info.total_system_memory ?? 0), data)]
  const share = used / maxBytes
  const usage = `${bytes(used)} of ${bytes(maxBytes)} used (${Math.round(share * 100)} %)`
  return policy === 'noeviction' ? [withoutEviction(share, usage, data)] : [withEviction(policy, evicted, usage, data)]
})

function withoutMaximum(used: number, system: number, data: CheckResult['data']): CheckResult {
  const machine = system > 0 ? ` of the machine's ${bytes(system)}` : ''
  return warning(
    `maxmemory is 0, so nothing bounds Redis but its machine: ${bytes(used)}${machine} used.`,
    'Set maxmemory below the memory of the machine, with maxmemory-policy noeviction.',
    data,
  )
}

function withoutEviction(share: number, usage: string, data: CheckResult['data']): CheckResult {
  if (share >= 1) {
    return error(
      `Redis is full and refuses writes (OOM): ${usage}.`,
      'Raise maxmemory, or remove what else is stored there.',
      data,
    )
  }
  if (share < NEARLY_FULL) return ok(`Nothing is evicted (noeviction), ${usage}.`, data)
  return warning(
    `Redis is nearly full, and refuses writes when it is: ${usage}.`,
    'Raise maxmemory, or remove what else is stored there.',
    data,
  )
}

function withEviction(policy: string, evicted: number, usage: string, data: CheckResult['data']): CheckResult {
  const soFar = evicted > 0 ? `; ${counted(evicted, 'key')} evicted since it started` : ''
  return warning(
    `Redis evicts keys when it is full (${policy}), so a client that makes up identities can push out counts and blocks of others: ${usage}${soFar}.`,
    'Give Sluice a Redis of its own with maxmemory-policy noeviction.',
    data,
  )
}
