import { HERE } from './here.js'

/** The folder of our packages, where this copy runs from a file of its own. In a bundle, no frame shows whose it is. */
const [, PACKAGES] =
  /^(?:file:\/\/)?(.*[\\/])core[\\/](?:dist[\\/]program\.cjs|src[\\/]util[\\/]here\.ts)$/.exec(HERE) ?? []
/** Those who work on the source need our frames. */
const IS_BUILT = PACKAGES !== undefined && HERE.endsWith('.cjs')
/** Bounds our frames before the caller's. */
const MAX_OWN = 30

/**
 * Has the stack of an error begin with the line that called us. Our own frames would be most of those that Node shows, or all
 * of them.
 */
export function beginAtCaller(error: Error): void {
  if (!IS_BUILT) return
  const frames = framesIn(capture(error.constructor))
  const first = frames.findIndex((frame) => !isOwn(frame))
  if (frames.length === 0 || first === 0) return
  const shown = frames.slice(Math.max(first, 0)).slice(0, Error.stackTraceLimit)
  // Above the message of an unhandled rejection, Node shows the line at which the stack was captured last.
  Error.captureStackTrace(error)
  // Node keeps what it has captured if the property is deleted, and not if it is assigned.
  const value = [`${error.name}: ${error.message}`, ...shown].join('\n')
  Reflect.deleteProperty(error, 'stack')
  Object.defineProperty(error, 'stack', { value, writable: true, configurable: true })
}

/** Adds to messages about a limiter without a name where the application made it. */
export class MadeAt {
  readonly #where: string
  readonly #captured = capture(MadeAt)
  #place: string | undefined

  /** `where`: the limiter in messages. */
  constructor(where: string) {
    this.#where = where
  }

  withPlace(message: string): string {
    if (!message.startsWith(this.#where)) return message
    // Reading a stack takes longer than capturing it.
    this.#place ??= placeIn(framesIn(this.#captured))
    return `${this.#where}${this.#place}${message.slice(this.#where.length)}`
  }
}

/** The first line that is the application's own: ` (made at /app/server.js:12)`. */
function placeIn(frames: readonly string[]): string {
  if (PACKAGES === undefined) return ''
  const frame = frames.find((each) => !isOwn(each) && !/[\\/]node_modules[\\/]|\bnode:/.test(each)) ?? ''
  const place = frame.endsWith(')')
    ? frame.slice(frame.indexOf(' (') + 2, -1)
    : frame.replace(/^ {4}at (?:async )?/, '')
  // Without the column. Texts such as `native` have no line.
  const line = place.slice(place.startsWith('file://') ? 'file://'.length : 0, place.lastIndexOf(':'))
  const number = line.slice(line.lastIndexOf(':') + 1)
  return number !== line && Number(number) > 0 ? ` (made at ${line})` : ''
}

interface Captured {
  readonly stack?: unknown
}

/** The stack from the caller of a function on. */
function capture(callee: Parameters<typeof Error.captureStackTrace>[1]): Captured {
  const { stackTraceLimit } = Error
  const captured = {}
  // Unlike an assignment, this does not throw where the intrinsics are frozen.
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit + MAX_OWN)
  Error.captureStackTrace(captured, callee)
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  return captured
}

function framesIn({ stack }: Captured): readonly string[] {
  // Of another type if the application has a function for it, `Error.prepareStackTrace`.
  return typeof stack === 'string' ? stack.split('\n').filter((line) => line.startsWith('    at ')) : []
}

/** Whether a frame is ours, or of a function such as `forEach` or `Promise.all`. pnpm keeps each package in a folder of its own. */
function isOwn(frame: string): boolean {
  if (PACKAGES === undefined) return false
  return frame.includes(PACKAGES) || /[\\/]node_modules[\\/]@sluice[\\/]|\((?:<anonymous>|index \d+)\)$/.test(frame)
}
