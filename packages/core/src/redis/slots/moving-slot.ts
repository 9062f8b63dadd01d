import { isDecision, PEEK, type Plan, refusalBy, type StoreRequest, type StoreResult } from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import { blockIn, ResultReader } from '../scripts/decode.js'
import { encode, type PlanText } from '../scripts/encode.js'
import { keyStart } from '../scripts/keys.js'
import { unreadable } from '../scripts/reply-reader.js'
import { readKeys, run } from '../scripts/run.js'
import { decideScriptFor, partsOfOp } from '../scripts/script.js'
import { decideByKey } from './across-slots.js'
import type { RedisBase } from './base.js'

interface Moving extends Pick<RedisBase, 'connection' | 'prefix' | 'clock'> {
  readonly textOf: (plan: Plan) => PlanText
}

/**
 * Decides on a slot that is migrating from one master to another. A decision's keys are on either master, and those of
 * a new client on neither. The cluster redirects single keys, but allows no script with two of them. Blocks are
 * therefore read first. Then each key is charged separately, and refunded if another refuses.
 */
export async function decideOnMovingSlot(
  moving: Moving,
  request: StoreRequest,
  leftMs: () => number,
): Promise<StoreResult> {
  const decide = (part: StoreRequest) => decideKey(moving, part, leftMs())
  if (isDecision(request.op)) {
    const block = await findBlock(moving, request, leftMs)
    if (block) return block
  }
  // A strike would access other keys, so it is lost here. Strikes in a second step may be lost as well.
  // The record of a charge would be a further key: it is not kept, and none is changed meanwhile.
  const { keep } = request
  const unstruck = { ...request, strike: undefined, keep: undefined }
  if (keep && !isDecision(request.op))
    throw new SluiceError('STORE_UNAVAILABLE', 'redis: the slot of this charge is moving: try again')
  return request.plan.cells.length === 1 ? decide(unstruck) : decideByKey(unstruck, decide)
}

/** Decides cell keys without block keys, usually one. */
async function decideKey(
  { connection, prefix, clock, textOf }: Moving,
  request: StoreRequest,
  withinMs: number,
): Promise<StoreResult> {
  const { plan } = request
  const text = textOf(plan)
  const parts = text.parts | partsOfOp(request.op)
  const reply = await run(connection, withinMs, decideScriptFor(parts), () =>
    encode(new Map([[plan, [{ request }]]]), textOf, {
      prefix,
      now: clock?.(),
      keys: 'cells',
      parts,
      marker: undefined,
      waitingMarker: undefined,
    }),
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
  // Redis's clock determines whether a block has ended.
  const { now } = await decideByKey({ ...request, op: PEEK }, (part) => decideKey(moving, part, leftMs()))
  const block = blocks.find(({ ends }) => ends > now)
  return block && refusalBy(blockIn(block.reason, block.ends - now), now)
}
