import type { Store } from '@sluice/core'
import { type SharedNotes, textValue } from '@sluice/core/internal'
import type { NearAnswer } from './answers.js'
import { nearName } from './near-sink.js'
import { beforeInNear, isNear, type NearRow, nearIn } from './near-text.js'
import { writeTraffic } from './record-traffic.js'

const MAX_ROWS = 200
const HOUR_MS = 3_600_000

/** The clients that are near a limit, as all processes have seen them. @throws SluiceError `STORE_UNAVAILABLE` */
export async function clientsNear(store: Store, notes: SharedNotes): Promise<NearAnswer> {
  await writeTraffic(store)
  const now = notes.now()
  const members = await notes.members(Date.now() - HOUR_MS)
  const texts = await notes.get(members.map(nearName))
  const newest = new Map<string, NearRow>()
  for (const row of texts.flatMap(nearIn)) {
    const key = JSON.stringify([row.client, row.policy, row.limit])
    if (row.at >= (newest.get(key)?.at ?? 0)) newest.set(key, row)
  }
  const rows = [...newest.values()]
    .filter((row) => isNear(row) && row.until > now)
    .sort(beforeInNear)
    .slice(0, MAX_ROWS)
  const identities = await notes.identitiesOf(rows.map(({ client }) => client))
  return {
    now: Math.floor(now),
    processes: texts.filter((text) => text !== undefined).length,
    entries: rows.flatMap(({ client: id, ...row }, i) => {
      const identity = identities[i]
      // It was forgotten.
      return identity === undefined ? [] : [{ ...row, id, client: textValue(identity) }]
    }),
  }
}
