import { takesNone } from '../../store/kept-charge.js'
import {
  type BanTerms,
  type Cell,
  CONSUME,
  EVERY_POLICY,
  type Keep,
  type KernelName,
  type Plan,
  REFUND,
  RENEW,
  receiptsOf,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { countsPermits } from '../../store/units.js'
import { areEqual } from '../../util/are-equal.js'
import { EPOCH, keysOfCharge, recordText } from './charge-record.js'
import { reportsOf } from './decode.js'
import {
  blockSuffix,
  cellSuffix,
  firstOfKeys,
  keyStart,
  sharesKeyWithPrevious,
  strikesSuffix,
  waitingSuffix,
} from './keys.js'
import { BANS, JOINT, kindNumber, partsFor, TURNS } from './script.js'
import { KEEPING, RESERVING, STRIKING, TOGETHER, TOGETHER_KINDS } from './scripts.generated.js'
import { pushTurn, type WaitingRecord, waitingKeys } from './turns.js'

/** The arguments for `decide.lua` that depend only on a plan, computed once per plan. */
export interface PlanText {
  /** ARGV of the plan up to its runs, and the same for scripts with cells that share a key. */
  readonly header: readonly string[]
  readonly jointHeader: readonly string[]
  /** For each key of cells: the index of its identity, and the text after the identity. */
  readonly keyIdentities: readonly number[]
  readonly cellSuffixes: readonly string[]
  /**
   * The text after the identity in its block keys: for the policy, for the other policy whose bans apply, and for every
   * policy if such blocks are checked.
   */
  readonly blockSuffixes: readonly string[]
  /** ARGV of the ban, between the cells and the runs, in scripts that ban. */
  readonly ban: readonly string[]
  /** For each cell: the record of its waiters, if requests wait for their turn across processes. */
  readonly waiting: readonly WaitingRecord[]
  /** The text after the identity in further keys of a strike, and the marker that a ban sets. */
  readonly strikeSuffixes: readonly string[]
  readonly banMarker: string | undefined
  readonly takesPermits: boolean
  /** Whether equal decisions on one key are made together. */
  readonly goesTogether: boolean
  /** The parts of the script that every decision of the plan needs, for `decideScriptFor`. */
  readonly parts: number
  /** The reader of each cell's report in a reply. */
  readonly reports: ReturnType<typeof reportsOf>
}

/**
 * `marker`: the key that exists while any identity is blocked; absent in a cluster. `everyPolicy`: whether blocks and
 * bans of every policy are checked.
 */
export function planText(plan: Plan, marker?: string, everyPolicy = false): PlanText {
  const { policy } = plan
  const blockSuffixes = enforcedPolicies(plan, everyPolicy).map(blockSuffix)
  const keys = firstOfKeys(plan.cells)
  return {
    header: headerOf(plan, blockSuffixes.length, false),
    jointHeader: headerOf(plan, blockSuffixes.length, true),
    keyIdentities: keys.map(({ identity }) => identity),
    cellSuffixes: keys.map((cell) => cellSuffix(policy, cell)),
    blockSuffixes,
    ban: banText(plan, marker),
    waiting: plan.sharesTurns
      ? plan.cells.map((cell) => ({ identity: cell.identity, suffix: waitingSuffix(policy, cell) }))
      : [],
    strikeSuffixes: plan.ban ? [strikesSuffix(plan.ban.scope), blockSuffix(plan.ban.scope)] : [],
    banMarker: marker,
    takesPermits: plan.cells.some(countsPermits),
    goesTogether:
      plan.cells.length === 1 &&
      !plan.ban &&
      (TOGETHER_KINDS as readonly KernelName[]).includes((plan.cells[0] as Cell).kernel),
    parts: partsFor(plan),
    reports: reportsOf(plan.cells),
  }
}

/** The names of policies whose blocks and bans apply to identities of a plan. */
export function enforcedPolicies(
  { policy, banningPolicy }: Pick<Plan, 'policy' | 'banningPolicy'>,
  everyPolicy: boolean,
): string[] {
  return [policy, ...(banningPolicy === undefined ? [] : [banningPolicy]), ...(everyPolicy ? [EVERY_POLICY] : [])]
}

function headerOf({ identities, cells }: Plan, blockKeys: number, isJoint: boolean): string[] {
  const header = [String(identities * blockKeys), String(cells.length)]
  for (const [c, cell] of cells.entries()) {
    header.push(String(kindNumber(cell)))
    if (isJoint) header.push(sharesKeyWithPrevious(cells, c) ? '2' : cell.joint === undefined ? '0' : '1')
    header.push(String(cell.params.length), ...cell.params.map(String))
  }
  return header
}

/** The arguments of decide.lua for a plan's ban. */
function banText({ policy, cells, ban }: Plan, marker = ''): string[] {
  if (!ban) return ['0']
  const { identity, scope } = ban
  const keys = firstOfKeys(cells)
  const index = keys.findIndex((cell) => cell.identity === identity)
  const cell = keys[index] as Cell
  const texts = [String(index + 1), String(cellSuffix(policy, cell).length), `}:${scope}:`, marker, ...termsText(ban)]
  return [String(texts.length), ...texts]
}

/** The terms of a ban in the form of strikes.lua. */
export function termsText({ after, withinMs, forgetAfterMs, rungs }: BanTerms): string[] {
  return [after, withinMs, forgetAfterMs, ...rungs].map(String)
}

/**
 * How a script receives its keys. `undeclared`: at the end of ARGV, for keys of several slots of one master. `cells`:
 * cell keys without block keys.
 */
export type Keys = 'declared' | 'undeclared' | 'cells'

/** A request that waits for its decision. */
interface Pending {
  readonly request: StoreRequest
}

/** A batch in the form of `decide.lua`. */
export interface Encoded {
  readonly keys: string[]
  readonly args: string[]
}

/** How a batch is sent. */
export interface Sending {
  readonly prefix: string
  readonly now: number | undefined
  readonly keys: Keys
  /** The parts of the script. Without `BANS`, no refusal is a strike; without `TURNS`, no waiters are checked. */
  readonly parts: number
  /** Stands for all block keys. Without it, each identity's block keys are sent. */
  readonly marker: string | undefined
  /** The marker of waiters; absent in a cluster. */
  readonly waitingMarker: string | undefined
}

/** A batch while it is encoded. */
interface Encoding {
  readonly prefix: string
  readonly bans: boolean
  readonly turns: boolean
  readonly args: string[]
  /** Block keys, or the marker. */
  readonly keys: string[]
  /** Cell keys; the same list as `keys` if there is a marker. */
  readonly cellKeys: string[]
  /** Keys of records of waiters. */
  readonly records: string[]
  readonly strikeKeys: string[]
  /** Keys of kept charges, and the positions in `args` of the index of each charge's first key. */
  readonly chargeKeys: string[]
  readonly chargesAt: { readonly at: number; readonly key: number }[]
}

/**
 * Encodes requests, grouped by plan and in order within each group. Similar neighbours form one run, in which each
 * costs one key and nothing else. Similar neighbours on one key are decided together and cost one key in all.
 */
export function encode(
  groups: ReadonlyMap<Plan, readonly Pending[]>,
  textOf: (plan: Plan) => PlanText,
  { prefix, now, keys: kind, parts, marker, waitingMarker = '' }: Sending,
): Encoded {
  const keys = marker === undefined ? [] : [marker]
  const cellKeys = marker === undefined ? [] : keys
  const args = [now === undefined ? '' : String(now), '', String(groups.size)]
  const bans = (parts & BANS) !== 0
  const turns = (parts & TURNS) !== 0
  const encoding: Encoding = {
    prefix,
    bans,
    turns,
    args,
    keys,
    cellKeys,
    records: [],
    strikeKeys: [],
    chargeKeys: [],
    chargesAt: [],
  }
  for (const [plan, group] of groups) {
    const text = textOf(plan)
    args.push(...((parts & JOINT) === 0 ? text.header : text.jointHeader))
    if (bans) args.push(...text.ban)
    pushRuns(encoding, group, text)
  }
  if (kind === 'cells') {
    args[1] = '0'
    return { keys: cellKeys, args }
  }
  args[1] = marker === undefined ? String(keys.length) : '-1'
  if (marker === undefined) for (const key of cellKeys) keys.push(key)
  if (kind === 'undeclared') {
    const first = args.length + 1
    for (const key of keys) args.push(key)
    args.push(String(first))
    return { keys: [], args }
  }
  // The script derives these keys from cell keys. They are declared for the server or a proxy.
  for (const key of encoding.strikeKeys) keys.push(key)
  for (const { at, key } of encoding.chargesAt) args[at] = String(keys.length + key + 1)
  for (const key of encoding.chargeKeys) keys.push(key)
  if (turns) args.push(String(keys.length + 1), waitingMarker)
  for (const key of encoding.records) keys.push(key)
  return { keys, args }
}

function pushRuns(encoding: Encoding, group: readonly Pending[], text: PlanText): void {
  const { args, bans, turns } = encoding
  const runs = args.push('') - 1
  let runCount = 0
  let sizeAt = -1
  let size = 0
  let previous: StoreRequest | undefined
  for (let i = 0; i < group.length; ) {
    const { request } = group[i] as Pending
    const equals = text.goesTogether && !turns && !request.keep ? equalsFrom(group, i) : 1
    i += equals
    if (equals === 1 && previous && isAlike(previous, request)) size++
    else {
      if (sizeAt >= 0) args[sizeAt] = String(size)
      runCount++
      size = equals
      const needing = request.needs ? request.op + RESERVING : request.op
      const striking = bans && request.strike !== undefined ? needing + STRIKING : needing
      const op = request.keep ? striking + KEEPING : striking
      args.push(String(equals === 1 ? op : op + TOGETHER))
      sizeAt = args.push('') - 1
      for (const cost of request.costs) args.push(String(cost))
      if (request.needs) for (const need of request.needs) args.push(String(need))
    }
    previous = equals === 1 ? request : undefined
    pushDecision(encoding, request, text)
  }
  if (sizeAt >= 0) args[sizeAt] = String(size)
  args[runs] = String(runCount)
}

/** Appends the arguments of one decision. */
function pushDecision(encoding: Encoding, request: StoreRequest, text: PlanText): void {
  const { args, prefix, bans, turns, keys, cellKeys, records, strikeKeys } = encoding
  if (text.takesPermits) args.push(request.permitId)
  if (bans && request.strike !== undefined) {
    args.push(String(request.strike))
    pushStrikeKeys(strikeKeys, request, text, prefix)
  }
  if (turns && request.op < REFUND) {
    pushTurn(args, request)
    records.push(...waitingKeys(request, text, prefix))
  }
  if (request.keep) pushCharge(encoding, request)
  if (request.op === REFUND) pushReceipts(args, request)
  pushKeys(keys, cellKeys, request, text, prefix)
}

/** Encodes one charge of a plan with one cell for `one.lua`. Without `marker`, it includes the block key. */
export function encodeOne(
  request: StoreRequest,
  text: PlanText,
  { prefix, now, parts, marker, waitingMarker }: Omit<Sending, 'keys'>,
): Encoded {
  const { identities, costs, permitId } = request
  const start = keyStart(prefix, identities[0] as string)
  const keys = [marker ?? start + (text.blockSuffixes[0] as string), start + (text.cellSuffixes[0] as string)]
  if ((parts & TURNS) !== 0) {
    keys.push(...waitingKeys(request, text, prefix))
    if (waitingMarker !== undefined) keys.push(waitingMarker)
  }
  const cost = String(costs[0])
  const time = now === undefined ? '' : String(now)
  if (text.takesPermits) return { keys, args: [cost, time, permitId] }
  if (time !== '') return { keys, args: [cost, time] }
  return { keys, args: cost === '1' ? [] : [cost] }
}

/** Number of equal requests on one key from `first` on: 1 if the next one differs. */
function equalsFrom(group: readonly Pending[], first: number): number {
  const { request } = group[first] as Pending
  if (request.op !== CONSUME) return 1
  let next = first + 1
  for (; next < group.length; next++) {
    const other = (group[next] as Pending).request
    if (other.identities[0] !== request.identities[0] || !isAlike(request, other)) break
  }
  return next - first
}

function isAlike(a: StoreRequest, b: StoreRequest): boolean {
  if (a.op !== b.op || a.op === REFUND) return false
  if ((a.strike === undefined) !== (b.strike === undefined)) return false
  if ((a.keep === undefined) !== (b.keep === undefined)) return false
  return areEqual(a.costs, b.costs) && areEqual(a.needs, b.needs)
}

/** Appends the arguments for a charge to keep, or for a kept one to change. */
function pushCharge({ args, prefix, chargeKeys, chargesAt }: Encoding, request: StoreRequest): void {
  const { op, plan, identities } = request
  const { id = '', forMs, takes } = request.keep as Keep
  chargesAt.push({ at: args.length, key: chargeKeys.length })
  args.push('', String(identities.length), String(forMs))
  if (op < REFUND) args.push(id.slice(0, EPOCH), recordText(request))
  else {
    const isOfId = op === RENEW || takesNone(request)
    for (const [c, { identity }] of plan.cells.entries()) {
      const isTaken = takes?.[c] ?? true
      args.push(String(isTaken ? identity + 1 : isOfId ? -identity - 1 : 0))
    }
  }
  for (const key of keysOfCharge(prefix, request)) chargeKeys.push(key)
}

function pushReceipts(args: string[], { plan, charge }: StoreRequest): void {
  const charged = charge as StoreResult
  args.push(String(charged.now))
  for (const [c, receipt] of receiptsOf(plan, charged).entries()) {
    args.push(String(receipt), String(charged.refunded?.[c] ?? 0))
  }
}

function pushKeys(keys: string[], cellKeys: string[], request: StoreRequest, text: PlanText, prefix: string): void {
  const { identities } = request
  if (identities.length === 1) {
    const start = keyStart(prefix, identities[0] as string)
    if (keys !== cellKeys) for (const suffix of text.blockSuffixes) keys.push(start + suffix)
    for (const suffix of text.cellSuffixes) cellKeys.push(start + suffix)
    return
  }
  const starts = identities.map((identity) => keyStart(prefix, identity))
  if (keys !== cellKeys) for (const start of starts) for (const suffix of text.blockSuffixes) keys.push(start + suffix)
  const { cellSuffixes, keyIdentities } = text
  for (let i = 0; i < cellSuffixes.length; i++) {
    cellKeys.push((starts[keyIdentities[i] as number] as string) + cellSuffixes[i])
  }
}

function pushStrikeKeys(keys: string[], { plan, identities }: StoreRequest, text: PlanText, prefix: string): void {
  if (!plan.ban) return
  // One for all strikes of a batch, whether the batch also reads it or not.
  if (text.banMarker !== undefined && keys.length === 0) keys.push(text.banMarker)
  const start = keyStart(prefix, identities[plan.ban.identity] as string)
  for (const suffix of text.strikeSuffixes) keys.push(start + suffix)
}
