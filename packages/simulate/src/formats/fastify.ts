import type { LogFormat, ParseLine } from './format.js'
import { type Json, objectOf, valueAt } from './json.js'
import { type JsonFields, jsonFormat } from './json-lines.js'

/** https://fastify.dev/docs/latest/Reference/Logging/: of a whole request, as `joined` makes it of two lines. */
const FIELDS: JsonFields = {
  mark: '.responseTime',
  time: '.time',
  duration: '.responseTime',
  durationUnitMs: 1,
  ip: '.req.remoteAddress',
  method: '.req.method',
  target: '.req.url',
  status: '.res.statusCode',
  host: '.req.host',
}
const WHOLE = jsonFormat('fastify', FIELDS)

/** Requests whose response is awaited at most. Older ones are forgotten: their second line is one that is not understood. */
const MAX_OPEN = 100_000

/** Fastify's own log, which has a line when a request arrives, and another once its response has been sent. */
export const FASTIFY: LogFormat = {
  ...WHOLE,
  detect(lines) {
    const parse = FASTIFY.parser()
    let requests = 0
    let unread = 0
    for (const line of lines) {
      const record = parse(line)
      if (record) requests++
      else if (record === undefined) unread++
    }
    return requests > unread
  },
  parser(): ParseLine {
    const parseWhole = WHOLE.parser()
    const open = new Map<string, unknown>()
    return (line) => {
      const json = objectOf(line)
      if (!json) return undefined
      const id = `${json.pid} ${json.hostname} ${json.reqId}`
      const { req } = json
      if (isArrival(json)) {
        const [oldest] = open.size >= MAX_OPEN ? open.keys() : []
        if (oldest !== undefined) open.delete(oldest)
        open.set(id, req)
        return false
      }
      if (json.reqId === undefined || json.responseTime === undefined || json.res === undefined) return null
      const arrived = open.get(id)
      open.delete(id)
      return arrived === undefined ? undefined : parseWhole(JSON.stringify({ ...json, req: arrived }))
    }
  },
}

/** Others have a request, too, such as those of errors. */
function isArrival(json: Json): boolean {
  return (
    json.reqId !== undefined &&
    valueAt(json, '.req.url') !== undefined &&
    json.res === undefined &&
    json.err === undefined
  )
}
