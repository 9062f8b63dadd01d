import type { Destination } from '../../redis/batching/batch.js'
import type { PlanTexts } from '../../redis/batching/plan-texts.js'
import { probeKey } from '../../redis/health/probing.js'
import { type Encoded, enforcedPolicies } from '../../redis/scripts/encode.js'
import { blockSuffix, cellSuffix, keyStart } from '../../redis/scripts/keys.js'
import { ReplyReader, unreadable } from '../../redis/scripts/reply-reader.js'
import { isTryAgain, RUN, run } from '../../redis/scripts/run.js'
import { kindNumber } from '../../redis/scripts/script.js'
import { ADMITTED, BLOCKED, ELSEWHERE, exchangeScript } from '../../redis/scripts/scripts.generated.js'
import type { RedisBase } from '../../redis/slots/base.js'
import { groupBy } from '../../util/group-by.js'
import type { ChargesByWindow } from './charges-by-window.js'
import type { Count, CountTable, ObservedTime } from './counts.js'

export interface ExchangeOptions extends RedisBase {
  readonly texts: PlanTexts
}

/** The part of a count that an exchange carries. */
interface Carried {
  readonly count: Count
  readonly unsent: ChargesByWindow
}

/**
 * Sends the charges of some counts to Redis, and continues from its reply. Charges that may have reached Redis are
 * never sent again, as they would count twice. Resolves when the exchange has ended, whatever its outcome. `order`: its
 * position in the order of all that is sent.
 */
export async function exchange(
  options: ExchangeOptions,
  counts: readonly Count[],
  to: Destination,
  order: number,
): Promise<void> {
  const { connection, prefix, timeoutMs, breaker, clock } = options
  const [first] = counts as [Count]
  const isAlone = counts.length === 1 && first.isAlone
  const byTable = groupBy(counts.map(carry), ({ count }) => count.table)
  const all = [...byTable.values()].flat()
  const encoded = () => encodeExchange(options, byTable, isAlone, to.node !== undefined)
  let sentAt = performance.now()
  let isSent = false
  const onSent = () => {
    isSent = true
    sentAt = performance.now()
  }
  try {
    const reply = await run(connection, timeoutMs, exchangeScript, encoded, { ...RUN, node: to.node, onSent })
    observe(all, reply, order, sentAt, clock)
    breaker.succeeded(to.slot)
  } catch (error) {
    const isMoving = isTryAgain(error as Error)
    for (const carried of all) {
      const { count, unsent } = carried
      drop(carried)
      if (isMoving || !isSent) count.local.putBack(unsent)
      if (isMoving) count.isAlone = true
    }
    if (!isMoving) breaker.failed(to.slot, error as Error, probeKey(prefix, first.identity))
  }
}

/** Takes the unsent charges of a count. Later charges go with a later exchange. */
function carry(count: Count): Carried {
  const unsent = count.local.takeUnsent()
  count.underWay.push(unsent)
  return { count, unsent }
}

function drop({ count, unsent }: Carried): void {
  count.underWay = count.underWay.filter((other) => other !== unsent)
}

/** Encodes the arguments of lua/exchange.lua, by cell, in the order in which `observe` reads the reply. */
function encodeExchange(
  { prefix, clock, marker, texts }: ExchangeOptions,
  byTable: ReadonlyMap<CountTable, readonly Carried[]>,
  isAlone: boolean,
  isUndeclared: boolean,
): Encoded {
  const keys = marker === undefined ? [] : [marker]
  const args = [clock ? String(clock()) : '', '0', String(keys.length), String(byTable.size)]
  for (const [table, group] of byTable) {
    const { cell, policy } = table
    const blocks = isAlone ? [] : enforcedPolicies(table, texts.bringsKeysOfEveryPolicy).map(blockSuffix)
    const suffixes = [...blocks, cellSuffix(policy, cell)]
    args.push(...[kindNumber(cell), cell.params.length, ...cell.params, blocks.length, group.length].map(String))
    for (const { count, unsent } of group) {
      const start = keyStart(prefix, count.identity)
      for (const suffix of suffixes) keys.push(start + suffix)
      unsent.push(args)
    }
  }
  if (!isUndeclared) return { keys, args }
  args[1] = String(args.length + 1)
  return { keys: [], args: [...args, ...keys] }
}

function observe(
  all: readonly Carried[],
  bytes: unknown,
  order: number,
  sentAt: number,
  clock: (() => number) | undefined,
): void {
  const reply = new ReplyReader(bytes)
  const saidAt = reply.uint48()
  const now = clock ? clock() : saidAt
  const at = performance.now()
  // Redis read its clock after the exchange was sent, and its ms may have been about to end.
  const observed: ObservedTime = { now: saidAt, at, spreadMs: clock ? 0 : Math.ceil(at - sentAt) + 1 }
  for (const carried of all) {
    const { count, unsent } = carried
    const outcome = reply.uint8()
    drop(carried)
    if (outcome === ELSEWHERE) {
      count.local.putBack(unsent)
      count.isAlone = true
      continue
    }
    if (outcome !== ADMITTED && outcome !== BLOCKED) throw unreadable(`expected an outcome, got ${outcome}`)
    count.observed = observed
    count.isAlone = false
    count.local.observe(reply, now, count.underWay)
    // Compared by position, as replies that arrive together reach their callers in any order.
    if (count.pending.length > 0) {
      count.pending = count.pending.filter((pending) => pending.order > order)
      for (const { units } of count.pending) count.local.assume(units, now)
    }
    // Redis decides for a blocked identity: its result has the reason and the end.
    count.isOpen = outcome !== BLOCKED
  }
  reply.end()
}
