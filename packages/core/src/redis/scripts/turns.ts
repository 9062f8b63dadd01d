import type { Plan, SharesTurns, StoreRequest, WaitingClass } from '../../store/store.js'
import { keyStart } from './keys.js'

/** Of a cell: the record of its waiters. */
export interface WaitingRecord {
  readonly identity: number
  /** What follows the identity in its key. */
  readonly suffix: string
}

/** The records of waiters, one for each cell of a request. */
export function waitingKeys(
  { identities }: StoreRequest,
  { waiting }: { readonly waiting: readonly WaitingRecord[] },
  prefix: string,
): string[] {
  return waiting.map(({ identity, suffix }) => keyStart(prefix, identities[identity] as string) + suffix)
}

/** What lua/turns.lua is sent. */
export function encodeWaiting(
  key: string,
  process: string,
  { sharesTurns }: Plan,
  classes: readonly WaitingClass[],
  marker: string | undefined,
): { keys: string[]; args: string[] } {
  const { ttlMs } = sharesTurns as SharesTurns
  return { keys: [key], args: [process, ttlMs, marker ?? '', ...classesText(classes)].map(String) }
}

/** What decide.lua is sent of the turn of a request. */
export function pushTurn(args: string[], { turn, plan: { sharesTurns } }: StoreRequest): void {
  args.push(turn?.process ?? '')
  if (!turn) return
  const { cell, class: own, ifRefused, ifAdmitted } = turn
  const { ttlMs } = sharesTurns as SharesTurns
  const numbers = [cell + 1, ...classText(own), ttlMs, ...classesText(ifRefused), ...classesText(ifAdmitted)]
  for (const number of numbers) args.push(String(number))
}

function classesText(classes: readonly WaitingClass[]): number[] {
  return [classes.length, ...classes.flatMap(classText)]
}

function classText({ headStartMs, since }: WaitingClass): [number, number] {
  return [headStartMs, performance.now() - since]
}
