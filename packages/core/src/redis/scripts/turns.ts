import {
  PEEK,
  type Plan,
  type SharesTurns,
  type StoreRequest,
  type WaitingClass,
  type WaitingTurn,
} from '../../store/store.js'
import type { Encoded, PlanText } from './encode.js'
import { keyStart } from './keys.js'
import { ReplyReader } from './reply-reader.js'
import { BANS, JOINT, sha1Of } from './script.js'
import {
  behindScript,
  type LuaScript,
  RESERVING,
  waitingMarkerScript,
  waitingOneScript,
  waitingScript,
} from './scripts.generated.js'

/** The records of waiters, one for each cell of a request. */
export function waitingKeys({ identities }: StoreRequest, { waiting }: PlanText, prefix: string): string[] {
  return waiting.map(({ identity, suffix }) => keyStart(prefix, identities[identity] as string) + suffix)
}

const watching = new WeakMap<LuaScript, LuaScript>()

/** The script that decides where none waits, and else replies with a list: see lua/waiting.lua. */
export function watchingScript(script: LuaScript, isOne: boolean): LuaScript {
  let made = watching.get(script)
  if (!made) {
    const source = `${(isOne ? waitingOneScript : waitingScript).source}\n${script.source}`
    made = { name: `waiting ${script.name}`, source, sha1: sha1Of(source) }
    watching.set(script, made)
  }
  return made
}

/** The line of every script of decisions that looks for the marker of blocks. */
const LOOKS_FOR_MARKER = "if tryCall('GET', KEYS[1]) then\nreturn ''\nend"

const marked = new WeakMap<LuaScript, LuaScript>()

/** The same by the marker of waiters, of a script that looks for the marker of blocks. It is sent what that is. */
export function markedScript(script: LuaScript): LuaScript {
  let made = marked.get(script)
  if (!made) {
    const [before, after, ...more] = script.source.split(LOOKS_FOR_MARKER)
    if (after === undefined || more.length > 0) throw new Error(`${script.name}: expected one line with the marker`)
    const source = before + waitingMarkerScript.source + after
    made = { name: `marked ${script.name}`, source, sha1: sha1Of(source) }
    marked.set(script, made)
  }
  return made
}

/** What `watchingScript` is sent. `watched`: the records of waiters, or the marker that stands for them. */
export function encodeWatching({ keys, args }: Encoded, watched: readonly string[], isOne: boolean): Encoded {
  return { keys: [...keys, ...watched], args: isOne ? args : [...args, String(keys.length + 1)] }
}

const behind = new WeakMap<LuaScript, LuaScript>()

/** The script that decides one request behind those that wait: see lua/behind.lua. */
export function behindWaitersScript(decide: LuaScript): LuaScript {
  let made = behind.get(decide)
  if (!made) {
    const source = behindScript.source.replace('return DECISION', () => decide.source)
    made = { name: `behind ${decide.name}`, source, sha1: sha1Of(source) }
    behind.set(decide, made)
  }
  return made
}

/** What `behindWaitersScript` is sent, from what the script of `parts` would be. */
export function encodeBehind(
  { keys, args }: Encoded,
  { needs, turn, plan }: StoreRequest,
  text: PlanText,
  parts: number,
  records: readonly string[],
  marker: string | undefined,
): Encoded {
  const header = (parts & JOINT) === 0 ? text.header : text.jointHeader
  // The time, the number of block keys, one plan, its header and its ban, one run; counted from 1.
  const opAt = 3 + header.length + ((parts & BANS) === 0 ? 0 : text.ban.length) + 2
  const peek = needs ? PEEK + RESERVING : PEEK
  const more = [keys.length + 1, opAt, peek, ...(turn ? turnText(turn, plan, marker) : ['']), args.length + 1]
  return { keys: [...keys, ...records], args: [...args, ...more.map(String)] }
}

/** What lua/turns.lua is sent. */
export function encodeWaiting(
  key: string,
  process: string,
  { sharesTurns }: Plan,
  classes: readonly WaitingClass[],
  marker: string | undefined,
): Encoded {
  const { ttlMs } = sharesTurns as SharesTurns
  return { keys: [key], args: [process, ttlMs, marker ?? '', ...classesText(classes)].map(String) }
}

function turnText(
  { process, cell, class: own, ifRefused, ifAdmitted }: WaitingTurn,
  { sharesTurns }: Plan,
  marker = '',
): (string | number)[] {
  const { ttlMs } = sharesTurns as SharesTurns
  const [headStartMs, aheadMs] = classText(own)
  const lists = [...classesText(ifRefused), ...classesText(ifAdmitted)]
  return [process, cell + 1, headStartMs, aheadMs, ttlMs, marker, ...lists]
}

function classesText(classes: readonly WaitingClass[]): number[] {
  return [classes.length, ...classes.flatMap(classText)]
}

function classText({ headStartMs, since }: WaitingClass): [number, number] {
  return [headStartMs, performance.now() - since]
}

/** What the reply says of waiters, and the rest of it. */
export function splitBehind(reply: unknown): { reply: Uint8Array; behindMs: number; anyWaits: boolean } {
  const reader = new ReplyReader(reply)
  reader.at = reader.length - 3
  const rest = (reply as Uint8Array).subarray(0, reader.length - 3)
  return { behindMs: reader.uint16(), anyWaits: reader.uint8() === 1, reply: rest }
}
