import type { Plan, SharesTurns, StoreRequest, WaitingClass } from '../../store/store.js'
import { keyStart } from './keys.js'

/** A cell's record of waiters. */
export interface WaitingRecord {
  readonly identity: number
  /** The text after the identity in its key. */
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

/** The keys and arguments of lua/turns.lua. */
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

/** Appends the arguments of decide.lua for the turn of a request. */
export function pushTurn(args: string[], { turn, plan: { sharesTurns } }: StoreRequest): void {
  args.push(turn?.process ?? '')
  if (!turn) return
  const { cell, class: ownClass, ifRefused, ifAdmitted } = turn
  const { ttlMs } = sharesTurns as SharesTurns
  const numbers = [cell + 1, ...classText(ownClass), ttlMs, ...classesText(ifRefused), ...classesText(ifAdmitted)]
  for (const number of numbers) args.push(String(number))
}

function classesText(classes: readonly WaitingClass[]): number[] {
  return [classes.length, ...classes.flatMap(classText)]
}

function classText({ headStartMs, since }: WaitingClass): [number, number] {
  return [headStartMs, performance.now() - since]
}
