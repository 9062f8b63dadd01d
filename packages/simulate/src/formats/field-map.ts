import { addressIn } from '@sluice/core/internal'
import { type Json, objectOf } from './json.js'
import { epochTime, instantOf } from './times.js'

/** What a field of requests looks like: its name, and the value that it must have. */
interface Look {
  readonly field: string
  readonly name: RegExp
  readonly has: (value: unknown) => boolean
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown) => Number(value) >= 0 && value !== '' && value !== null && typeof value !== 'boolean'

/** By the names that loggers use. The last part of a path counts, and the first field that looks so. */
const LOOKS: readonly Look[] = [
  { field: 'start', name: /^(?:start|started)(?:_?(?:time|at|ts|utc))?$/i, has: isInstant },
  {
    field: 'time',
    name: /^@?(?:time|timestamp|ts|msec|date|datetime|time_?local|time_?iso8601|end_?time)$/i,
    has: isInstant,
  },
  {
    field: 'ip',
    name: /ip$|addr(?:ess)?$|^client$|^remote$|^peer$|host$/i,
    has: (value) => isText(value) && addressIn(value) !== undefined,
  },
  { field: 'method', name: /method$|verb$/i, has: (value) => isText(value) && /^[A-Z]{3,10}$/.test(value) },
  {
    field: 'target',
    name: /ur[il]$|path$|target$|^request$/i,
    has: (value) => isText(value) && /^(?:[A-Z]{3,10} )?(?:\/|https?:\/\/)/.test(value),
  },
  { field: 'status', name: /status(?:_?code)?$|^code$/i, has: (value) => /^[1-5]\d\d$/.test(String(value)) },
  { field: 'bytes', name: /bytes(?:_?sent)?$|size$|length$/i, has: isNumber },
  { field: 'user', name: /^user(?:_?(?:name|id))?$/i, has: isText },
  { field: 'agent', name: /agent$/i, has: isText },
]
const DURATION = /duration|latency|elapsed|took|time_?taken|(?:response|request)_?time/i
const UNITS: readonly (readonly [field: string, name: RegExp])[] = [
  ['durationNs', /_?n(?:ano)?s(?:ec)?/i],
  ['durationUs', /_?(?:us|micro)/i],
  ['durationMs', /_?m(?:illi)?s(?:ec)?s?$/i],
]
/** Objects within objects are looked at this deep. */
const MAX_DEPTH = 4

/** A map of fields for lines of JSON, as `--format` takes it. Undefined where they have neither times nor clients. */
export function proposedFields(lines: readonly string[]): string | undefined {
  const found: Record<string, string> = {}
  for (const line of lines.slice(0, 20)) {
    const json = objectOf(line)
    if (json) lookInto(json, '', 0, found)
  }
  if (found.ip === undefined || (found.time === undefined && found.start === undefined)) return undefined
  const names = [...LOOKS.map(({ field }) => field), 'durationS', ...UNITS.map(([field]) => field)]
  const pairs = names.filter((name) => found[name] !== undefined).map((name) => `"${name}": "${found[name]}"`)
  return `{${pairs.join(', ')}}`
}

function lookInto(json: Json, path: string, depth: number, found: Record<string, string>): void {
  for (const [name, value] of Object.entries(json)) {
    if (!/^[\w@-]+$/.test(name)) continue
    const own = `${path}.${name}`
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      if (depth < MAX_DEPTH) lookInto(value as Json, own, depth + 1, found)
      continue
    }
    const look = LOOKS.find(({ field, name: like, has }) => found[field] === undefined && like.test(name) && has(value))
    if (look) found[look.field] = own
    else if (DURATION.test(name) && (isNumber(value) || /^[\d.]+(?:ns|us|µs|ms|s)$/.test(String(value)))) {
      found[UNITS.find(([, like]) => like.test(name.replace(DURATION, '')))?.[0] ?? 'durationS'] ??= own
    }
  }
}

function isInstant(value: unknown): boolean {
  return (typeof value === 'number' ? epochTime(value) : isText(value) ? instantOf(value) : undefined) !== undefined
}
