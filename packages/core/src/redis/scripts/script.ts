import { createHash } from 'node:crypto'
import { isCalendar } from '../../store/algorithms.js'
import { type Cell, DEBIT, type KernelName, type Op, type Plan, REFUND } from '../../store/store.js'
import {
  type CutScript,
  DECIDE,
  KINDS,
  type KindScript,
  type LuaScript,
  ONE_SCRIPTS,
  type Section,
  UNIFORM_SCRIPTS,
} from './scripts.generated.js'

/** The kinds of the port. lua/cells has no others, and `KIND_CALLS` in `commands-needed.ts` has all of them. */
const kinds: readonly KernelName[] = KINDS

/** The number of a cell's kind in decide.lua. */
export function kindNumber({ kernel }: Cell): number {
  return kinds.indexOf(kernel) + 1
}

const bitOf = (kind: KernelName) => 1 << kinds.indexOf(kind)

/** Set if a plan has several cells. */
const SEVERAL = 1 << KINDS.length
/** Set if several limits share a cell. */
const SHARED = 1 << (KINDS.length + 1)
/** Set if a request is a refund, release or renewal. */
const REFUNDS_OR_RENEWS = 1 << (KINDS.length + 2)

/** Set if refusals are strikes. */
export const BANS = 1 << (KINDS.length + 3)

/** Set if cells share a key. */
export const JOINT = 1 << (KINDS.length + 4)

/** Set if decisions check for requests that wait for their turn across processes. */
export const TURNS = 1 << (KINDS.length + 5)

/** Set if a request charges whatever room there is. */
const DEBITS = 1 << (KINDS.length + 6)

/** Set if a cell is a window of the calendar. */
const CALENDAR = 1 << (KINDS.length + 7)
/** Set if charges are kept, or kept ones changed. */
export const CHARGES = 1 << (KINDS.length + 8)

const bitsOf = (sections: readonly Section[]) =>
  sections.reduce((bits, section) => bits | (SECTIONS[section] ?? bitOf(section as KernelName)), 0)

const SECTIONS: Partial<Record<Section, number>> = {
  several: SEVERAL,
  bans: BANS,
  joint: JOINT,
  turns: TURNS,
  debit: DEBITS,
  calendar: CALENDAR,
  charges: CHARGES,
}

function isShared({ limits }: Cell): boolean {
  return limits.length > 1
}

/**
 * The parts of decide.lua that a plan needs, as a sum of bits. A batch needs the bits of its plans, and those of
 * `REFUNDS_OR_RENEWS`, `DEBITS`, `BANS` and `TURNS` that its requests require.
 */
export function partsFor({ cells }: Plan): number {
  let parts = cells.length > 1 ? SEVERAL : 0
  for (const cell of cells) {
    parts |= bitOf(cell.kernel)
    if (isShared(cell)) parts |= SHARED
    if (cell.joint !== undefined) parts |= JOINT
    if (isCalendar(cell)) parts |= CALENDAR
  }
  return parts
}

/** The parts that a request needs beside those of its plan. */
export function partsOfOp(op: Op): number {
  return (op >= REFUND ? REFUNDS_OR_RENEWS : 0) | (op === DEBIT ? DEBITS : 0)
}

/** The parts of a batch for which there is a script of one kind. */
function uniformParts({ kind, isShared, isJoint }: KindScript): number {
  return bitOf(kind) | (isShared ? SHARED : 0) | (isJoint ? SEVERAL | JOINT : 0)
}

/** The scripts that the build makes for plans with cells of one kind, by the parts that a batch needs. */
const uniform = new Map<number, CutScript>(UNIFORM_SCRIPTS.map((made) => [uniformParts(made), made]))

const variants = new Map<number, LuaScript>()

/**
 * The script for a batch, by the parts that it needs: one that the build makes for a kind of cell, or decide.lua. Redis
 * creates every function of a script again on every run, so fewer parts make a single decision much cheaper.
 */
export function decideScriptFor(parts: number): LuaScript {
  let script = variants.get(parts)
  if (!script) {
    const cut = uniform.get(parts & ~(BANS | TURNS | CALENDAR)) ?? DECIDE
    const source = sourceOf(cut, parts)
    script = { name: cut.name, source, sha1: sha1Of(source) }
    variants.set(parts, script)
  }
  return script
}

/** A script with the pieces for these parts. */
function sourceOf({ pieces }: CutScript, parts: number): string {
  const chosen = pieces.filter(({ sections }) => (bitsOf(sections) & ~parts) === 0)
  return `${chosen.map((piece) => piece.source).join('\n')}\n`
}

/**
 * The script that decides one charge of one cell and nothing else, with the parts that it needs. The parameters are part
 * of its source, so there is one script per kind and parameters.
 */
export function oneScriptFor(cell: Cell, parts: number): LuaScript {
  const shared = isShared(cell)
  const cut = ONE_SCRIPTS.find((one) => one.kind === cell.kernel && one.isShared === shared)
  if (!cut) throw new Error(`no script decides one ${cell.kernel}`)
  const params = cell.params.join()
  const declared = shared ? `PARAMS={${params}}` : `${cell.params.map((_, i) => `P${i + 1}`).join()}=${params}`
  const whole = () => `local ${declared}\n${sourceOf(cut, parts)}`
  return {
    name: cut.name,
    sha1: sha1Of(whole()),
    // Built when it is sent, as a store may have many of these scripts.
    get source() {
      return whole()
    },
  }
}

/** The SHA-1 by which Redis identifies a script. */
function sha1Of(source: string): string {
  return createHash('sha1').update(source).digest('hex')
}
