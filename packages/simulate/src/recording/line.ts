import type { RecordedRequest } from './form.js'

/** Characters that JSON leaves as they are. */
const PLAIN = /^[ !#-[\]-~]*$/
/** Control characters that JSON leaves as they are, too. */
const CONTROLS = /[\u007f-\u009f\u2028\u2029]/g

/** A record as a line of JSON, without its break. By hand, which takes half of the time of `JSON.stringify`. */
export function lineOf(record: RecordedRequest): string {
  let line = `{"time":${record.time}`
  if (record.duration !== undefined) line += `,"duration":${record.duration}`
  line += `,"method":${quoted(record.method)}`
  if (record.host !== undefined) line += `,"host":${quoted(record.host)}`
  line += `,"path":${quoted(record.path)}`
  if (record.route !== undefined) line += `,"route":${quoted(record.route)}`
  if (record.status !== undefined) line += `,"status":${record.status}`
  line += `,"outcome":${quoted(record.outcome)}`
  if (record.reported !== undefined) line += `,"reported":${quoted(record.reported)}`
  if (record.by !== undefined) line += `,"by":"${record.by}"`
  // HMACs need no escapes.
  if (record.ip) line += `,"ip":["${record.ip.join('","')}"]`
  if (record.ids) line += `,"ids":${escaped(JSON.stringify(record.ids))}`
  if (record.tiers) line += `,"tiers":${escaped(JSON.stringify(record.tiers))}`
  if (record.costs) line += `,"costs":${escaped(JSON.stringify(record.costs))}`
  return `${line}}`
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : escaped(JSON.stringify(text))
}

function escaped(json: string): string {
  return json.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
