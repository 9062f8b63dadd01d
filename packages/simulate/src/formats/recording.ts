import { MISSING, type RecordedRequest, type RecordingHead, START, VERSION } from '../recording/form.js'
import { type LogFormat, type ParseLine, WrongLog } from './format.js'
import { objectOf, textAt } from './json.js'
import { type LineReader, ParsedLine } from './parsed-line.js'
import { epochTime, isPlausibleDuration } from './times.js'

/** The mark of a text that stands for an address: its HMAC, behind those of its networks. */
export const HASHED = '~'

/** Records of live traffic, as `startRecording` and `sluice serve --record` write them. */
export const RECORDING: LogFormat = {
  name: 'recording',
  client: '.ip',
  detect: (lines) => lines.some((line) => line.startsWith(START)),
  parser: () => parserOf(new Recording()),
  reader: () => READER,
  clients(lines) {
    const head = lines.find((line) => line.startsWith(START))
    return head === undefined ? undefined : headIn(head).secret
  },
}

function parserOf(recording: Recording): ParseLine {
  return Object.assign((line: string) => recording.parse(line), { caveat: () => recording.caveat })
}

class Recording {
  #head: RecordingHead | undefined
  #missing = 0

  parse(line: string): ParsedLine | null | undefined {
    if (line.startsWith(START)) this.#begin(headIn(line))
    else if (line.startsWith(MISSING)) this.#missing += Number(line.slice(MISSING.length)) || 0
    else return this.#head && recordIn(line)
    return null
  }

  get caveat(): string | undefined {
    const facts: string[] = []
    if (this.#missing > 0) facts.push(`lacks ${this.#missing} requests, which could not be written in time`)
    const { share = 1 } = this.#head ?? {}
    if (share < 1)
      facts.push(`has the requests of ${100 * share} % of the networks: other keys than addresses count a part`)
    return facts.length === 0 ? undefined : facts.join(', and ')
  }

  #begin(head: RecordingHead): void {
    if (this.#head && this.#head.secret !== head.secret) {
      throw new WrongLog('has recordings by two secrets, whose clients cannot be matched: split it')
    }
    this.#head = head
  }
}

/** @throws WrongLog for a form that this program does not know */
function headIn(line: string): RecordingHead {
  const head = (objectOf(line.slice(START.length)) ?? {}) as Partial<RecordingHead>
  const { version, secret, share } = head
  if (Number(version) > VERSION) {
    throw new WrongLog(
      `is a recording of version ${Number(version)}, and this program reads up to version ${VERSION}: install a newer @sluice/cli`,
    )
  }
  if (version !== VERSION || typeof secret !== 'string' || typeof share !== 'number') {
    throw new WrongLog('begins as a recording, and has a damaged first line')
  }
  return { version, secret, share }
}

function recordIn(line: string): ParsedLine | undefined {
  const json = objectOf(line)
  if (!json) return undefined
  const { time, duration, method, host, path, status, ip, ids } = json as Partial<RecordedRequest>
  if (typeof time !== 'number' || epochTime(time) === undefined || typeof path !== 'string') return undefined
  if (duration !== undefined && !(typeof duration === 'number' && isPlausibleDuration(duration))) return undefined
  const record = new ParsedLine(time, 1, duration, line, READER)
  record.method = typeof method === 'string' ? method : undefined
  record.host = typeof host === 'string' ? host : undefined
  record.target = path
  record.status = typeof status === 'number' ? status : undefined
  record.user = textAt({ ids }, '.ids.user')
  if (Array.isArray(ip) && (ip.length === 2 || ip.length === 3)) record.ip = HASHED + ip.join('.')
  return record
}

const READER: LineReader = {
  format: 'recording',
  head: '',
  agent: () => undefined,
  header(line, name) {
    const ids = idsIn(line)
    const credentials = ids.get('credentials')
    if (name === 'authorization' && credentials !== undefined) return `Bearer ${credentials}`
    if (name !== 'cookie') return ids.get(`header:${name}`)
    const cookies = [...ids].filter(([kind]) => kind.startsWith(COOKIE))
    return cookies.map(([kind, value]) => `${kind.slice(COOKIE.length)}=${value}`).join('; ') || undefined
  },
  field(line, path) {
    if (path.startsWith(ID)) return idsIn(line).get(path.slice(ID.length))
    const json = objectOf(line)
    // The address itself comes behind its networks.
    if (json && path === '.ip') return Array.isArray(json.ip) ? String(json.ip.at(-1)) : undefined
    return json && textAt(json, path)
  },
}

const COOKIE = 'cookie:'
/** Fields of identities begin so, and go on with its kind. */
export const ID = 'id='

function idsIn(line: string): ReadonlyMap<string, string> {
  const ids = objectOf(line)?.ids
  const entries = typeof ids === 'object' && ids !== null ? Object.entries(ids) : []
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
