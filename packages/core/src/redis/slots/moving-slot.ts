import { CHARGE, PEEK, type Plan, refusalBy, type StoreRequest, type StoreResult } from '../../store/store.js'
import { blockReport, ResultReader } from '../scripts/decode.js'
import { encode, type PlanText } from '../scripts/encode.js'
import { keyStart } from '../scripts/keys.js'
import { unreadable } from '../scripts/reply-reader.js'
import { readKeys, run } from '../scripts/run.js'
import { decideScriptFor, REFUNDS_OR_RENEWS } from '../scripts/script.js'
import { decideByKey } from './across-slots.js'
import type { RedisBase } from './base.js'

interface Moving extends Pick<RedisBase, 'connection' | 'prefix' | 'clock'> {
  readonly textOf: (plan: Plan) => PlanText
}

/**
 * Decides on a slot that moves from one master to another. Some of a decision's keys are here, some there, and those of a
 * new client in neither place: the cluster lets no script have two of them, but redirects each alone. So blocks are read
 * first, then each key is charged by itself, and refunded if another refuses.
 */
export async function decideOnMovingSlot(
  moving: Moving,
  request: StoreRequest,
  leftMs: () => number,
): Promise<StoreResult> {
  const decide = (part: StoreRequest) => decideKey(moving, part, leftMs())
  if (request.op <= CHARGE) {
    const block = await findBlock(moving, request, leftMs)
    if (block) return block
  }
  // A strike would touch other keys: it is lost here, as one may be that is a second step.
  const { strike: _, ...unstruck } = request
  return request.plan.cells.length === 1 ? decide(unstruck) : decideByKey(unstruck, decide)
}

/** Keys without their block keys, so mostly one. */
async function decideKey(
  { connection, prefix, clock, textOf }: Moving,
  request: StoreRequest,
  withinMs: number,
): Promise<StoreResult> {
  const { plan } = request
  const text = textOf(plan)
  const parts = text.parts | (request.op > CHARGE ? REFUNDS_OR_RENEWS : 0)
  const reply = await run(connection, withinMs, decideScriptFor(parts), () =>
    encode(new Map([[plan, [{ request }]]]), textOf, { prefix, now: clock?.(), keys: 'cells', parts }),
  )
  const results = new ResultReader(reply)
  const result = results.next(request, text.reports)
  results.end()
  if (!result) throw unreadable('expected its key to be here')
  return result
}

async function findBlock(
  moving: Moving,
  request: StoreRequest,
  leftMs: () => number,
): Promise<StoreResult | undefined> {
  const { connection, prefix, textOf } = moving
  const { blockSuffixes } = textOf(request.plan)
  const starts = request.identities.map((identity) => keyStart(prefix, identity))
  const keys = starts.flatMap((start) => blockSuffixes.map((suffix) => start + suffix))
  const blocks = (await readKeys(connection, leftMs(), keys)).flatMap((value) => {
    const [, ends, reason = ''] = /^(\d+) (.*)$/s.exec(value?.toString() ?? '') ?? []
    return ends === undefined ? [] : [{ ends: Number(ends), reason }]
  })
  if (blocks.length === 0) return undefined
  // The clock of Redis decides whether a block has ended.
  const { now } = await decideByKey({ ...request, op: PEEK }, (part) => decideKey(moving, part, leftMs()))
  const block = blocks.find(({ ends }) => ends > now)
  return block && refusalBy(blockReport(block.reason, block.ends - now), now)
}
