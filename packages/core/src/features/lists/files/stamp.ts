import type { BigIntStats } from 'node:fs'

/** Which file it was, and which of its contents: equal stamps are equal contents. */
export function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join()
}
