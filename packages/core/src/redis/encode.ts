import { type Answer, type Ask, type Cell, type Plan, REFUND, receiptsOf } from '../store.js'
import { areEqual } from './are-equal.js'
import { reportsOf } from './decode.js'
import { blockSuffix, cellSuffix, keyStart } from './keys.js'
import { partNumber, partsFor } from './script.js'

/** What the store says of a plan to `decide.lua`, worked out once per plan. */
export interface PlanText {
  /** ARGV of the plan, up to its runs. */
  readonly header: readonly string[]
  /** What follows the identity in the key of each cell. */
  readonly cellSuffixes: readonly string[]
  readonly blockSuffix: string
  readonly takesPlaces: boolean
  /** Which parts of the script it needs, for `decideScriptFor`. */
  readonly parts: number
  /** How the reply tells of each cell. */
  readonly reports: ReturnType<typeof reportsOf>
}

export function planText(plan: Plan): PlanText {
  const header = [String(plan.identities), String(plan.cells.length)]
  for (const cell of plan.cells) {
    header.push(String(partNumber(cell)), String(cell.params.length), ...cell.params.map(String))
  }
  return {
    header,
    cellSuffixes: plan.cells.map((cell) => cellSuffix(plan.policy, cell)),
    blockSuffix: blockSuffix(plan.policy),
    takesPlaces: plan.cells.some((cell) => cell.kernel === 'concurrency'),
    parts: partsFor(plan.cells),
    reports: reportsOf(plan.cells),
  }
}

/** Added to the op of asks with `needs`. */
const RESERVING = 8

/** A batch as `decide.lua` takes it. */
export interface Encoded {
  readonly keys: string[]
  readonly args: string[]
}

/**
 * Asks grouped by plan, in order within each: equal neighbours form one run, so that a batch of
 * equal decisions costs one key each and nothing else. Without `marker`, each brings its block keys.
 */
export function encode(
  groups: ReadonlyMap<Plan, readonly { readonly ask: Ask }[]>,
  textOf: (plan: Plan) => PlanText,
  prefix: string,
  now: number | undefined,
  marker: string | undefined,
): Encoded {
  const keys = marker === undefined ? [] : [marker]
  const cellKeys = marker === undefined ? [] : keys
  const args = [now === undefined ? '' : String(now), '', String(groups.size)]
  for (const [plan, group] of groups) {
    const text = textOf(plan)
    args.push(...text.header)
    const runs = args.push('') - 1
    let runCount = 0
    let sizeAt = -1
    let size = 0
    let previous: Ask | undefined
    for (const { ask } of group) {
      if (previous && isAlike(previous, ask)) size++
      else {
        if (sizeAt >= 0) args[sizeAt] = String(size)
        runCount++
        size = 1
        args.push(String(ask.needs ? ask.op + RESERVING : ask.op))
        sizeAt = args.push('') - 1
        for (const cost of ask.costs) args.push(String(cost))
        if (ask.needs) for (const need of ask.needs) args.push(String(need))
      }
      previous = ask
      if (text.takesPlaces) args.push(ask.lease)
      if (ask.op === REFUND) pushReceipts(args, ask)
      pushKeys(keys, cellKeys, ask, text, prefix)
    }
    if (sizeAt >= 0) args[sizeAt] = String(size)
    args[runs] = String(runCount)
  }
  if (cellKeys === keys) {
    args[1] = '-1'
    return { keys, args }
  }
  args[1] = String(keys.length)
  for (const key of cellKeys) keys.push(key)
  return { keys, args }
}

function isAlike(a: Ask, b: Ask): boolean {
  if (a.op !== b.op || a.op === REFUND) return false
  return areEqual(a.costs, b.costs) && areEqual(a.needs, b.needs)
}

function pushReceipts(args: string[], { plan, charge }: Ask): void {
  const charged = charge as Answer
  args.push(String(charged.now))
  for (const [c, receipt] of receiptsOf(plan, charged).entries()) {
    args.push(String(receipt), String(charged.given?.[c] ?? 0))
  }
}

function pushKeys(keys: string[], cellKeys: string[], ask: Ask, text: PlanText, prefix: string): void {
  const { plan, identities } = ask
  if (identities.length === 1) {
    const start = keyStart(prefix, identities[0] as string)
    if (keys !== cellKeys) keys.push(start + text.blockSuffix)
    for (const suffix of text.cellSuffixes) cellKeys.push(start + suffix)
    return
  }
  const starts = identities.map((identity) => keyStart(prefix, identity))
  if (keys !== cellKeys) for (const start of starts) keys.push(start + text.blockSuffix)
  for (let i = 0; i < plan.cells.length; i++) {
    cellKeys.push((starts[(plan.cells[i] as Cell).identity] as string) + text.cellSuffixes[i])
  }
}
