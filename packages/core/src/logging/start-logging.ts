import type { SluiceEvents } from '../limiter/events.js'
import { invalidPolicy } from '../util/errors.js'
import { escapeControls } from '../util/escape.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { EventLog } from './event-log.js'
import { FirstRefusals } from './first-refusals.js'
import { type KeyOptions, keyTexts } from './key-text.js'

/** Writes lines: pino's interface. `console` will do. */
export interface Logger {
  info(fields: object, message: string): unknown
  warn(fields: object, message: string): unknown
}

export interface LoggingOptions extends KeyOptions {
  /**
   * Such as `pino()` or `console`.
   *
   * An error that it throws becomes a warning of the process (`SLUICE_LISTENER_FAILED`).
   */
  readonly logger: Logger
  /** Most lines a second of each event, 1 to 1,000. One more line has the number of the others. @default 10 */
  readonly linesPerSecond?: number
}

const MAX_LINES = 1000
/** Longest text of a cause. */
const LONGEST_CAUSE = 200

/**
 * Writes a line for the first refusal of a client in a window, and for each ban, block, change of a store, reload of policies
 * and warning in this process. The number of lines a second is bounded. See docs/logging.md. Returns a function that ends it.
 *
 * @example startLogging({ logger: pino() })
 * @throws SluiceError `INVALID_POLICY`
 */
export function startLogging(options: LoggingOptions): () => void {
  const where = 'startLogging'
  knownOptions(where, options, ['logger', 'keys', 'secret', 'linesPerSecond'])
  const { logger, linesPerSecond = 10 } = options
  if (typeof logger?.info !== 'function' || typeof logger.warn !== 'function') {
    invalidPolicy(where, 'logger', 'an object with info() and warn(), such as pino() or console', logger)
  }
  wholeNumber(where, 'linesPerSecond', linesPerSecond, 1, MAX_LINES)
  const keyOf = keyTexts(where, options)
  const log = new EventLog(where, linesPerSecond, ({ level, fields, message }) =>
    logger[level](escaped(fields), escapeControls(`sluice: ${message}`)),
  )
  logRefusals(log, keyOf)
  logBlocks(log, keyOf)
  log.on('store', ({ state, cause, node }) => ({
    level: state === 'available' ? 'info' : 'warn',
    fields: { state, node, cause: cause && causeText(cause) },
    message: `the store is ${state}`,
  }))
  log.on('policies-reloaded', (fields) => ({ level: 'info', fields, message: 'other policies are in force' }))
  log.on('warning', (fields) => ({ level: 'warn', fields, message: fields.code }))
  return () => log.end()
}

type KeyText = ReturnType<typeof keyTexts>

function logRefusals(log: EventLog, keyOf: KeyText): void {
  const refusals = new FirstRefusals()
  log.on('refused', (event) => {
    const { policy, outcome, limit, source, verdict } = event
    const { keys, id, isNew } = refusals.look(event)
    if (!isNew) return undefined
    const { retryAfterMs } = verdict
    const by = limit === undefined ? '' : ` by ${limit}`
    return {
      level: 'info',
      fields: { policy, outcome, limit, source, keys: keys.map(keyOf), retryAfterMs },
      message: `${policy} refuses: ${outcome}${by}`,
      written: () => refusals.written(id, event),
    }
  })
}

function logBlocks(log: EventLog, keyOf: KeyText): void {
  const logOf = <Name extends 'ban' | 'block' | 'unblock' | 'ban-evicted'>(
    name: Name,
    level: 'info' | 'warn',
    messageOf: (event: SluiceEvents[Name]) => string,
  ) =>
    log.on(name, (event) => {
      const { identity, ...fields } = event
      return { level, fields: { ...fields, key: keyOf(identity) }, message: messageOf(event) }
    })
  logOf('ban', 'warn', ({ policy, rung, forMs }) => `${policy} bans: rung ${rung}, ${forMs} ms`)
  logOf('block', 'info', ({ policy = EVERY_POLICY }) => `${policy} blocks`)
  logOf('unblock', 'info', ({ policy = EVERY_POLICY }) => `${policy} ends a block`)
  logOf(
    'ban-evicted',
    'warn',
    ({ policy = EVERY_POLICY }) => `${policy} ends a ban before its time: the store has no room`,
  )
}

const EVERY_POLICY = 'every policy'

/** Loggers that write JSON escape some control characters and not all. */
function escaped(fields: object): object {
  const safe = (value: unknown) => (typeof value === 'string' ? escapeControls(value) : value)
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, Array.isArray(value) ? value.map(safe) : safe(value)]),
  )
}

/** Cut at the first quotes, as these may hold a key or a name. */
function causeText({ message }: Error): string {
  return (message.split(/["'`]/, 1)[0] as string).slice(0, LONGEST_CAUSE)
}
