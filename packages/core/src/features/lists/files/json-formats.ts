import { isKind } from '../../../store/identity.js'
import { show } from '../../../util/errors.js'
import { ipRange, RANGE_FORMS } from '../../../util/ip-range.js'
import type { EntryDetails, ListBuilder } from '../list-data.js'
import { standardValue } from '../standard-value.js'
import { FileFault, lineAt } from './lines.js'

type Fields = Readonly<Record<string, unknown>>

/**
 * An array of ranges, or arrays of values by their kind: `{ "ip": ["192.0.2.0/24"], "user": ["ann"] }`. An entry may be an
 * object `{ "value": …, "reason": "…", "expiresAt": … }`.
 */
export function readJson(text: string, builder: ListBuilder): void {
  const data = parsed(text)
  const byKind: Fields = Array.isArray(data) ? { ip: data } : fieldsOf(data, text)
  for (const [kind, entries] of Object.entries(byKind)) {
    if (!isKind(kind) || kind.includes('+')) throw fault(text, kind, 'the kind of an identity, such as "ip"')
    if (!Array.isArray(entries)) throw fault(text, kind, `an array of values for ${show(kind)}`)
    for (const entry of entries) addEntry(text, builder, kind, entry)
  }
}

function addEntry(text: string, builder: ListBuilder, kind: string, entry: unknown): void {
  const isObject = typeof entry === 'object' && entry !== null
  const { value, reason, expiresAt }: Fields = { __proto__: null, ...(isObject ? entry : { value: entry }) }
  const details: EntryDetails = { reason, expiresAt: timeIn(text, expiresAt) }
  if (kind === 'ip') return addRange(text, builder, value, details)
  const isValue = (typeof value === 'string' && value !== '') || (typeof value === 'number' && Number.isFinite(value))
  if (!isValue) throw fault(text, value, 'a non-empty text or a number')
  builder.addText(kind, standardValue(kind, String(value)), details)
}

/**
 * Reads the output of `cscli decisions list -o json`: alerts with their decisions. Reads decisions alone too, as CrowdSec's
 * local API returns them. Bans of addresses and ranges are taken, until their duration from when the file was written is over;
 * other scopes, other remedies and simulated decisions are not.
 */
export function readCrowdSec(text: string, builder: ListBuilder, writtenAt: number): void {
  const data = parsed(text)
  // Without any decision.
  if (data === null) return
  if (!Array.isArray(data)) throw new FileFault(1, 'expected an array of alerts or decisions')
  for (const item of data) {
    const { decisions } = fieldsOf(item, text)
    const all = decisions === undefined ? [item] : (decisions ?? [])
    if (!Array.isArray(all)) throw fault(text, 'decisions', 'an array of decisions')
    for (const decision of all) addDecision(text, builder, fieldsOf(decision, text), writtenAt)
  }
}

function addDecision(text: string, builder: ListBuilder, decision: Fields, writtenAt: number): void {
  const { scope, value, type, duration, until, scenario, simulated } = decision
  if (typeof scope !== 'string' || typeof type !== 'string')
    throw fault(text, value, 'a decision with a scope and a type')
  if (!/^(?:ip|range)$/i.test(scope) || type.toLowerCase() !== 'ban' || simulated === true) return
  const leftMs = duration === undefined ? undefined : goDuration(text, duration)
  const expiresAt = leftMs === undefined ? timeIn(text, until) : writtenAt + leftMs
  addRange(text, builder, value, { reason: scenario, expiresAt })
}

function addRange(text: string, builder: ListBuilder, value: unknown, details: EntryDetails): void {
  const range = typeof value === 'string' ? ipRange(value.trim()) : undefined
  if (!range) throw fault(text, value, RANGE_FORMS)
  builder.addRange(range, details)
}

const UNITS_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  µs: 1e-3,
  us: 1e-3,
  ns: 1e-6,
}

/** `3h59m12.5s`, as Go writes durations, in ms. */
function goDuration(text: string, duration: unknown): number {
  const whole = /^(-?)((?:\d+(?:\.\d+)?(?:h|ms|m|s|µs|us|ns))+)$/.exec(String(duration))
  if (!whole) throw fault(text, duration, 'a duration such as "3h59m12s"')
  let ms = 0
  for (const [, number, unit] of (whole[2] as string).matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|µs|us|ns)/gy)) {
    ms += Number(number) * (UNITS_MS[unit as string] as number)
  }
  return Math.ceil(whole[1] === '-' ? -ms : ms)
}

/** A time in ms since 1970, or as a text of ISO 8601. */
function timeIn(text: string, time: unknown): number | undefined {
  if (time === undefined || time === null) return undefined
  const ms = typeof time === 'string' ? Date.parse(time) : time
  if (typeof ms !== 'number' || !Number.isFinite(ms)) throw fault(text, time, 'a time such as "2027-01-01T00:00:00Z"')
  return ms
}

function fieldsOf(data: unknown, text: string): Fields {
  // Fields that an entry leaves out are not those of `Object.prototype`.
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { __proto__: null, ...data }
  throw fault(text, data, 'an object')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    const [, position] = /position (\d+)/.exec(message) ?? []
    throw new FileFault(
      lineAt(text, position === undefined ? text.length : Number(position)),
      `expected JSON: ${message}`,
    )
  }
}

/** The line is that of the first value that is written alike: the parser gives no positions. */
function fault(text: string, value: unknown, expected: string): FileFault {
  const written = JSON.stringify(value)
  const position = written === undefined ? -1 : text.indexOf(written)
  return new FileFault(position < 0 ? undefined : lineAt(text, position), `expected ${expected}, got ${show(value)}`)
}
