import { textValue } from '@sluice/core/internal'
import type { TrafficFilter } from './answers.js'
import { isRefusal, networkOf, type Paths, REFUSED } from './decisions.js'

/** Decisions of a process in a second that are shown. */
export const SHOWN = 50
/** Seconds that a text has: those of a reader that asks each second, and is a little late. */
export const SECONDS = 8
/** A reader is believed to read on for as long, in ms, and texts are kept as long. */
export const OPEN_MS = 10_000
/** Filters that are open at a time. */
export const MAX_FILTERS = 16
const MAX_TEXT = 131_072
const FORM = 2

/** The name of the text of the filters that consoles have open, and of the text of a process. */
export const WATCHED = 'tail:watched'
export const tailName = (member: string): string => `tail:${member}`

export interface TailRow {
  /** Ms since 1970, by the store's clock. */
  readonly at: number
  /** Those that decided; of a refusal, those that refuse. */
  readonly policies: readonly string[]
  readonly reason: string
  readonly limit?: string
  readonly path?: string
  /** As text, `kind=value`. */
  readonly clients: readonly string[]
}

/** The decisions of a second. */
export interface TailSecond {
  /** Since 1970. */
  readonly second: number
  /** All, and those that fit any of the filters that were open. */
  readonly decisions: number
  readonly fitting: number
  readonly rows: readonly TailRow[]
}

/** A filter whose client is known. */
export type KnownFilter = Omit<TrafficFilter, 'client'> & { readonly identity?: string }

/** Whether a decision fits a filter. */
export function fits(row: Omit<TailRow, 'at'>, { policy, reason, path, network, identity }: KnownFilter, paths: Paths) {
  if (policy !== undefined && !row.policies.includes(policy)) return false
  if (reason !== undefined && !(reason === REFUSED ? isRefusal(row.reason) : reason === row.reason)) return false
  if (identity !== undefined && !row.clients.includes(identity)) return false
  if (network !== undefined && !row.clients.some((client) => networkOf(client) === network)) return false
  return path === undefined || (row.path !== undefined && paths.of(row.path) === path)
}

export function tailText(seconds: readonly TailSecond[]): string {
  for (let part = seconds; ; part = part.slice(1)) {
    const text = JSON.stringify([FORM, part])
    if (text.length <= MAX_TEXT || part.length === 0) return text
  }
}

/** None for a text of another version, or of anyone. */
export function tailIn(text: string | undefined): readonly TailSecond[] {
  const [form, seconds] = arrayIn(text)
  return form === FORM && Array.isArray(seconds) && seconds.every(isSecond) ? seconds.slice(-SECONDS) : []
}

/** The filters that are open, each with its end. */
export type Watched = readonly (readonly [until: number, filter: TrafficFilter])[]

export function watchedIn(text: string | undefined, now: number): Watched {
  return arrayIn(text)
    .filter(isWatched)
    .filter(([until]) => until > now && until <= now + 2 * OPEN_MS)
    .slice(-MAX_FILTERS)
}

function arrayIn(text: string | undefined): unknown[] {
  try {
    const read: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(read) ? read : []
  } catch {
    return []
  }
}

function isWatched(entry: unknown): entry is Watched[number] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'number' || typeof entry[1] !== 'object' || entry[1] === null)
    return false
  return Object.values(entry[1]).every((value) => typeof value === 'string' && value.length <= 512)
}

function isSecond(value: unknown): value is TailSecond {
  const { second, decisions, fitting, rows } = (value ?? {}) as Partial<TailSecond>
  const areCounts = [second, decisions, fitting].every((number) => Number.isSafeInteger(number) && Number(number) >= 0)
  return areCounts && Array.isArray(rows) && rows.length <= SHOWN && rows.every(isRow)
}

function isRow(value: unknown): value is TailRow {
  const { at, policies, reason, limit = '', path = '', clients } = (value ?? {}) as Partial<TailRow>
  const areTexts = [reason, limit, path].every(isText) && Array.isArray(policies) && policies.every(isText)
  const isTime = Number.isFinite(at) && Number(at) >= 0 && Number(at) < 2 ** 48
  return (
    isTime &&
    areTexts &&
    Array.isArray(clients) &&
    clients.every((client) => isText(client) && textValue(client).kind !== '')
  )
}

const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= 1024
