import type { CheckedQuery } from '../../blocks/given-blocks.js'
import { invalidPolicy } from '../../util/errors.js'
import { type BlockIndex, PAGE } from './block-index.js'
import { type IndexEntry, SHARDS } from './entry.js'

/** Maximum pages of the index that are read for one page. */
const MAX_PAGES = 64

/**
 * A page of an index. `shown` returns an entry as users see it, or undefined for an entry that does not belong to the
 * page.
 */
export async function pageOf<Entry>(
  index: BlockIndex,
  { where, cursor, max, matches }: CheckedQuery<Entry>,
  shown: (entry: IndexEntry) => Entry | undefined,
): Promise<{ readonly entries: readonly Entry[]; readonly cursor?: string }> {
  let [shard, version] = positionOf(where, cursor)
  const entries: Entry[] = []
  for (let n = 0; shard < SHARDS && entries.length < max && n < MAX_PAGES; n++) {
    const wanted = Math.min(PAGE, max - entries.length)
    const page = await index.page(shard, version, '', wanted)
    for (const { entry } of page.entries) {
      if (!entry || entry.isEnded || entry.until <= page.now) continue
      const found = shown(entry)
      if (found && matches(found)) entries.push(found)
    }
    if (page.entries.length < wanted) {
      shard++
      version = 0
    } else version = page.entries.at(-1)?.version as number
  }
  return shard < SHARDS ? { entries, cursor: `${shard}.${version}` } : { entries }
}

/** @throws SluiceError `INVALID_POLICY` */
function positionOf(where: string, cursor: string | undefined): [shard: number, version: number] {
  if (cursor === undefined) return [0, 0]
  const [, shard, version] = /^(\d{1,2})\.(\d{1,15})$/.exec(cursor) ?? []
  if (version === undefined) return invalidPolicy(where, 'cursor', 'the cursor of the page before', cursor)
  return [Number(shard), Number(version)]
}
