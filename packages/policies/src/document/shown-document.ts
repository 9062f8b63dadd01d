import { HIDDEN_FIELDS } from '../problems/without-clients.js'
import type { PolicyData } from './document.js'

/** Characters that are shown. Further policies are left out: the text is made between requests. */
const MAX_TEXT = 16_384
/** In place of clients, and of values of headers. */
const HIDDEN = 'not shown'

/** The policies of a document as YAML, without the clients that it names. */
export interface ShownDocument {
  readonly text: string
  /** The lines of the limits of each policy, from 1, in their order. A tier stands after a point, as in `byName`. */
  readonly lines: Readonly<Record<string, readonly number[]>>
  /** Policies for which there is no room. */
  readonly left: number
}

/** However the source is written: comments, `carry` and overrides are left out. */
export function shownDocument(
  policies: readonly { readonly name: string; readonly data: PolicyData }[],
): ShownDocument {
  const writer = new Writer(['version: 1', 'policies:'])
  const lines: [string, number[]][] = []
  let count = 0
  for (const { name, data } of policies) {
    const before = writer.lines.length
    const starts = new Map<unknown, number>()
    // A map, as a policy may have a name of every object.
    writer.write(new Map([[name, withoutClients(data)]]), '  ', starts)
    if (writer.size > MAX_TEXT) {
      writer.lines.length = before
      break
    }
    count++
    const { limits, tiers = {} } = data
    const all = [
      [name, limits] as const,
      ...Object.entries(tiers).map(([tier, own]) => [`${name}.${tier}`, own] as const),
    ]
    for (const [each, own] of all) if (own) lines.push([each, own.map((limit) => starts.get(limit) as number)])
  }
  return { text: `${writer.lines.join('\n')}\n`, lines: Object.fromEntries(lines), left: policies.length - count }
}

function withoutClients(data: PolicyData): object {
  const fields = Object.entries(data).map(([field, value]) => {
    if (HIDDEN_FIELDS.test(field)) return [field, HIDDEN]
    return [field, field === 'match' && value.headers ? { ...value, headers: HIDDEN } : value]
  })
  return Object.fromEntries(fields)
}

/** Texts that YAML reads as they are, in every version of it. */
const PLAIN = /^(?:[A-Za-z/][\w/.*-]*|\d+(?:ms|[smhdw]))$/
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n)$/i

/** Writes plain data as YAML: in one walk, and many times as fast as a library that must write any YAML. */
class Writer {
  readonly lines: string[]
  /** Characters so far. */
  size = 0

  constructor(lines: string[]) {
    this.lines = lines
  }

  /** @param starts takes the line of each object, by the object */
  write(value: object, indent: string, starts: Map<unknown, number>, lead = indent): void {
    const isList = Array.isArray(value)
    const entries = value instanceof Map ? value : isList ? value.entries() : Object.entries(value)
    let begin = lead
    for (const [key, each] of entries) {
      if (each === undefined) continue
      const start = isList ? `${begin}-` : `${begin}${scalarText(String(key))}:`
      begin = indent
      if (!starts.has(each)) starts.set(each, this.lines.length + 1)
      if (!isFull(each)) this.#add(`${start} ${scalarText(each)}`)
      else if (isList) this.write(each, `${indent}  `, starts, `${start} `)
      else {
        this.#add(start)
        this.write(each, `${indent}  `, starts)
      }
    }
  }

  #add(line: string): void {
    this.lines.push(line)
    this.size += line.length + 1
  }
}

/** Whether it takes lines of its own. */
function isFull(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** JSON is YAML. */
function scalarText(value: unknown): string {
  const isPlain = typeof value === 'string' && PLAIN.test(value) && !WORDS.test(value)
  return isPlain ? value : JSON.stringify(value)
}
