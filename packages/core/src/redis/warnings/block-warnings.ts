import type { StoreWarning, Warnings } from '../../util/warnings.js'

/** `most`: how many blocks and bans a process knows. */
export function warnOfFull(warnings: Warnings<StoreWarning>, most: number): void {
  warnings.emit(
    'SLUICE_BLOCKS_FULL',
    `redisStore: there are more blocks and bans than the ${most} that a process knows: those beyond end where Redis ` +
      'loses them. Block networks, or end blocks that are not needed',
  )
}

/** Ends that were lost go unmentioned: with blocks that still hold. */
export function warnOfRestored(
  warnings: Warnings<StoreWarning>,
  entries: readonly { readonly isEnded: boolean }[],
  one: string,
  several: string,
): void {
  const count = entries.filter(({ isEnded }) => !isEnded).length
  if (count === 0) return
  warnings.emit(
    'SLUICE_BLOCKS_RESTORED',
    `Redis had lost ${count === 1 ? one : `${count} ${several}`} that this process knew: written again. Look for ` +
      'a flush, an eviction, or a failover to a replica that lagged',
  )
}
