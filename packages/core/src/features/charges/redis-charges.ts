import { readRecord, recordsOf, slotsText } from '../../redis/scripts/charge-record.js'
import { readKeys } from '../../redis/scripts/run.js'
import type { RedisBase } from '../../redis/slots/base.js'
import { isDecision, type Keep, type KeptCharge, PEEK, type StoreRequest } from '../../store/store.js'
import { chargeId } from '../../util/charge-id.js'

/** The charges in Redis that are changed by their ids. */
export class RedisCharges {
  readonly #base: RedisBase

  constructor(base: RedisBase) {
    this.#base = base
  }

  /** A decision with the id under which its charge is kept. */
  withId(request: StoreRequest): StoreRequest {
    if (!isDecision(request.op) || request.op === PEEK || request.keep?.id !== undefined) return request
    const { slots } = this.#base
    const id = chargeId() + (slots.isCluster ? slotsText(slots.ofAll(request.identities)) : '')
    return { ...request, keep: { ...(request.keep as Keep), id } }
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  async find(policy: string, id: string): Promise<KeptCharge[]> {
    const { connection, timeoutMs, prefix, slots } = this.#base
    const keys = recordsOf(prefix, slots.isCluster, policy, id)
    if (keys.length === 0) return []
    const records = await readKeys(connection, timeoutMs, keys)
    return records.flatMap((record) => (record ? [readRecord(record, policy, id)] : []))
  }
}
