import type { Cell, Plan, WaitingClass, WaitingTurn } from '../../store/store.js'
import type { Connection } from '../clients/connection.js'
import { keyStart, waitingMarker, waitingSuffix } from '../scripts/keys.js'
import { run } from '../scripts/run.js'
import { turnsScript } from '../scripts/scripts.generated.js'
import { encodeWaiting } from '../scripts/turns.js'
import type { KeySlots } from '../slots/key-slots.js'
import type { Batches } from './batches.js'

export interface ReportWaitingOptions {
  readonly connection: Connection
  readonly prefix: string
  readonly timeoutMs: number
  readonly slots: KeySlots
  readonly batches: Batches
}

/** Tells other processes which requests wait for a permit in this one. */
export async function reportWaiting(
  { connection, prefix, timeoutMs, slots, batches }: ReportWaitingOptions,
  plan: Plan,
  identities: readonly string[],
  { process, cell }: Pick<WaitingTurn, 'process' | 'cell'>,
  classes: readonly WaitingClass[],
): Promise<void> {
  const waited = plan.cells[cell] as Cell
  const identity = identities[waited.identity] as string
  slots.requireServer(identity)
  const key = keyStart(prefix, identity) + waitingSuffix(plan.policy, waited)
  if (classes.length > 0) batches.noteWaiting(plan)
  const marker = slots.isCluster ? undefined : waitingMarker(prefix)
  await run(connection, timeoutMs, turnsScript, () => encodeWaiting(key, process, plan, classes, marker))
}
