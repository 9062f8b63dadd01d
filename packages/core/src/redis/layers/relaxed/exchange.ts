import type { PlanTexts } from '../../batching/plan-texts.js'
import { probeKey } from '../../health/probing.js'
import { type Encoded, enforcedPolicies } from '../../scripts/encode.js'
import { blockSuffix, cellSuffix, keyStart } from '../../scripts/keys.js'
import { ReplyReader, unreadable } from '../../scripts/reply-reader.js'
import { isTryAgain, run } from '../../scripts/run.js'
import { kindNumber } from '../../scripts/script.js'
import { ADMITTED, BLOCKED, ELSEWHERE, exchangeScript } from '../../scripts/scripts.generated.js'
import type { RedisBase } from '../../slots/base.js'
import type { ChargesByWindow } from './charges-by-window.js'
import type { Count, CountTable, Heard } from './counts.js'

export interface ExchangeOptions extends RedisBase {
  readonly texts: PlanTexts
}

/** Where counts are sent: to a slot's master with declared keys, or to a node. */
export interface Place {
  readonly slot: number
  readonly node: string | undefined
}

export interface Destination extends Place {
  /** When it is sent, in the order of all that is. */
  readonly order: number
}

/**
 * Sends Redis what was charged on some counts, and goes on from what it replies. Sent once: what may have reached Redis is
 * not sent again, for it would count twice. Resolves when that is over, however it went.
 */
export async function exchange(options: ExchangeOptions, all: readonly Carried[], to: Destination): Promise<void> {
  const { connection, prefix, timeoutMs, breaker } = options
  let sentAt = performance.now()
  let isSent = false
  const onSent = () => {
    isSent = true
    sentAt = performance.now()
  }
  const encoded = () => encodeExchange(options, all, to.node !== undefined)
  try {
    const reply = await run(connection, timeoutMs, exchangeScript, encoded, { node: to.node, onSent })
    hear(all, reply, to.order, sentAt, options.clock)
    breaker.succeeded(to.slot)
  } catch (error) {
    const isKept = !isSent || isTryAgain(error as Error)
    for (const carried of all) {
      const { count, unsent } = carried
      const isUnheard = drop(carried)
      if (isKept && isUnheard) count.local.putBack(unsent)
      if (isTryAgain(error as Error)) count.isAlone = true
    }
    if (isTryAgain(error as Error)) return
    breaker.failed(to.slot, error as Error, probeKey(prefix, (all[0] as Carried).count.identity))
  }
}

/** What an exchange carries of a count. */
export interface Carried {
  readonly count: Count
  readonly unsent: ChargesByWindow
}

/** Takes what a count has to send. What is charged on it from now on goes with a later exchange. */
export function carry(count: Count): Carried {
  const unsent = count.local.takeUnsent()
  count.underWay.push(unsent)
  count.isUsed = false
  return { count, unsent }
}

/** Whether it was still under way. */
function drop({ count, unsent }: Carried): boolean {
  const i = count.underWay.indexOf(unsent)
  if (i >= 0) count.underWay.splice(i, 1)
  return i >= 0
}

/** As lua/exchange.lua takes it: by cell, in the order in which `hear` reads the reply. */
function encodeExchange(
  { prefix, clock, marker, texts }: ExchangeOptions,
  all: readonly Carried[],
  isUndeclared: boolean,
): Encoded {
  const keys = marker === undefined ? [] : [marker]
  const args = [clock ? String(clock()) : '', '0', marker === undefined ? '0' : '1', '']
  let cells = 0
  let table: CountTable | undefined
  let suffixes: readonly string[] = []
  let sizeAt = 0
  let size = 0
  for (const { count, unsent } of all) {
    if (count.table !== table || count.isAlone) {
      table = count.table
      const { cell, policy } = table
      suffixes = count.isAlone ? [] : enforcedPolicies(table, texts.bringsKeysOfEveryPolicy).map(blockSuffix)
      args.push(String(kindNumber(cell)), String(cell.params.length), ...cell.params.map(String))
      sizeAt = args.push(String(suffixes.length), '') - 1
      size = 0
      cells++
      suffixes = [...suffixes, cellSuffix(policy, cell)]
    }
    const start = keyStart(prefix, count.identity)
    for (const suffix of suffixes) keys.push(start + suffix)
    unsent.push(args)
    args[sizeAt] = String(++size)
  }
  args[3] = String(cells)
  if (!isUndeclared) return { keys, args }
  args[1] = String(args.length + 1)
  return { keys: [], args: [...args, ...keys] }
}

function hear(
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
  // Redis's ms may be about to end when it is read, and it was read after this was sent.
  const heard: Heard = { now: saidAt, at, spreadMs: clock ? 0 : Math.ceil(at - sentAt) + 1 }
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
    count.heard = heard
    count.isAlone = false
    count.local.hear(reply, now, count.underWay)
    // By their order: replies that came in one go reach their callers in any.
    if (count.asked.length > 0) {
      count.asked = count.asked.filter((asked) => asked.order > order)
      for (const { units } of count.asked) count.local.assume(units, now)
    }
    // Where an identity is blocked, Redis is asked: its result says why, and until when.
    count.isOpen = outcome !== BLOCKED
  }
  reply.end()
}
