import { createHash } from 'node:crypto'
import type { Cell, KernelName, Plan } from '../../store/store.js'
import {
  DECIDE_PIECES,
  KINDS,
  type KindScript,
  type LuaScript,
  ONE_SCRIPTS,
  type Section,
  UNIFORM_SCRIPTS,
} from './scripts.generated.js'

/** The kinds of the port: lua/cells has no others. `KIND_CALLS` in `health/probing.ts` has them all. */
const kinds: readonly KernelName[] = KINDS

/** The number by which decide.lua knows the kind of a cell. */
export function kindNumber({ kernel }: Cell): number {
  return kinds.indexOf(kernel) + 1
}

const bitOf = (kind: KernelName) => 1 << kinds.indexOf(kind)

/** Where a plan has several cells. */
const SEVERAL = 1 << KINDS.length
/** Where a cell is shared by several limits. */
const SHARED = 1 << (KINDS.length + 1)
/** Where something is refunded or renewed. */
export const REFUNDS_OR_RENEWS = 1 << (KINDS.length + 2)

/** Where refusals are strikes. */
export const BANS = 1 << (KINDS.length + 3)

/** Where cells share a key. */
export const JOINT = 1 << (KINDS.length + 4)

/** Where decisions look for requests that wait for their turn across processes. */
export const TURNS = 1 << (KINDS.length + 5)

const bitsOf = (sections: readonly Section[]) =>
  sections.reduce((bits, section) => bits | (SECTIONS[section] ?? bitOf(section as KernelName)), 0)

const SECTIONS: Partial<Record<Section, number>> = { several: SEVERAL, bans: BANS, joint: JOINT, turns: TURNS }

function isShared({ limits }: Cell): boolean {
  return limits.length > 1
}

/** What a plan needs of decide.lua, as a sum of bits; a batch needs those of its plans, and of `REFUNDS_OR_RENEWS`, `BANS` and `TURNS` what it asks for. */
export function partsFor({ cells }: Plan): number {
  let parts = cells.length > 1 ? SEVERAL : 0
  for (const cell of cells) {
    parts |= bitOf(cell.kernel)
    if (isShared(cell)) parts |= SHARED
    if (cell.joint !== undefined) parts |= JOINT
  }
  return parts
}

/** Of a batch for which there is a script of one kind. */
function uniformParts({ kind, isShared, isJoint }: KindScript): number {
  return bitOf(kind) | (isShared ? SHARED : 0) | (isJoint ? SEVERAL | JOINT : 0)
}

/** By what a batch needs: the scripts that the build makes for plans of cells of one kind. */
const uniform = new Map(UNIFORM_SCRIPTS.map((made) => [uniformParts(made), made.script]))

/** decide.lua, with what a batch must need for a piece to be needed. */
const pieces = DECIDE_PIECES.map((piece) => ({ bits: bitsOf(piece.sections), piece }))

const variants = new Map<number, LuaScript>()

/**
 * The script that decides a batch, by what it needs: one that the build has made for it, or decide.lua with only these
 * parts. Redis makes every function of a script anew on every run: one decision then costs a fraction.
 */
export function decideScriptFor(parts: number): LuaScript {
  const made = uniform.get(parts)
  if (made) return made
  const needed = parts & ~(SHARED | REFUNDS_OR_RENEWS)
  let script = variants.get(needed)
  if (!script) {
    const chosen = pieces.filter(({ bits }) => (bits & ~needed) === 0)
    const source = chosen.map(({ piece }) => piece.source).join('')
    script = { name: 'decide', source, sha1: sha1Of(source) }
    variants.set(needed, script)
  }
  return script
}

/**
 * The script that decides one charge of one cell and nothing else. Its parameters stand in its text, so that there is one
 * for each cell of another kind or with other parameters.
 */
export function oneScriptFor(cell: Cell): LuaScript {
  const shared = isShared(cell)
  const made = ONE_SCRIPTS.find((one) => one.kind === cell.kernel && one.isShared === shared)
  if (!made) throw new Error(`no script decides one ${cell.kernel}`)
  const { name } = made.script
  const params = cell.params.join()
  const declared = shared ? `PARAMS={${params}}` : `${cell.params.map((_, i) => `P${i + 1}`).join()}=${params}`
  const whole = () => `local ${declared}\n${made.script.source}`
  return {
    name,
    sha1: sha1Of(whole()),
    // Put together when it is sent: a store may have many of them.
    get source() {
      return whole()
    },
  }
}

/** By which Redis knows a script. */
function sha1Of(source: string): string {
  return createHash('sha1').update(source).digest('hex')
}
