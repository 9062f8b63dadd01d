import { invalidPolicy, SluiceError, show } from './errors.js'
import { isRecord } from './is-record.js'
import { type Audience, everywhere, Listeners } from './listeners.js'
import { hintFor } from './option-hints.js'
import { processWarning } from './process-warning.js'

/** A warning of the process. */
export interface WarningEvent {
  /** Such as `SLUICE_SAME_NAME`; see docs/errors.md. */
  readonly code: string
  readonly message: string
}

/** Warnings about one limiter, which its option `warnings` silences. */
export const LIMITER_WARNINGS = [
  'SLUICE_BAN_OPEN_PROXY',
  'SLUICE_BLOCK_ALLOWED',
  'SLUICE_COUNT_FAILED',
  'SLUICE_INVALID_REQUEST',
  'SLUICE_LISTENER_FAILED',
  'SLUICE_LIST_KIND',
  'SLUICE_MANY_LIMITERS',
  'SLUICE_NO_USER',
  'SLUICE_ONE_CLIENT',
  'SLUICE_OPEN_PROXY',
  'SLUICE_SAME_LIMITER_TWICE',
  'SLUICE_SAME_NAME',
  'SLUICE_UNGROUPED_IPV6',
  'SLUICE_UNTRUSTED_PROXY',
] as const

/** Warnings about one store, which its option `warnings` silences. */
export const STORE_WARNINGS = [
  'SLUICE_BANS_EVICTED',
  'SLUICE_BLOCKS_DENIED',
  'SLUICE_BLOCKS_FULL',
  'SLUICE_BLOCKS_RESTORED',
  'SLUICE_EVICTION',
  'SLUICE_LISTENER_FAILED',
  'SLUICE_NO_FAILOVER_DETECTOR',
  'SLUICE_PERSIST_FAILED',
  'SLUICE_STORE_UNAVAILABLE',
] as const

/** Warnings about neither of these. `node --disable-warning=CODE` silences them. */
const OTHER_WARNINGS = [
  'SLUICE_AMBIGUOUS_ROUTE',
  'SLUICE_CONSOLE_FAILED',
  'SLUICE_LIST_FAILED',
  'SLUICE_MINIFIED_NAME',
  'SLUICE_NO_METER_PROVIDER',
  'SLUICE_OVERRIDE_FAILED',
  'SLUICE_OVERRIDE_KIND',
  'SLUICE_POLICIES_FAILED',
  'SLUICE_RECORDING_FAILED',
  'SLUICE_SHORT_WINDOW',
  'SLUICE_UNLIMITED_CONTEXT',
] as const

/** Every warning has a section in `docs/errors.md`: its cause, and what to do. */
const ALL_WARNINGS = [...new Set([...LIMITER_WARNINGS, ...STORE_WARNINGS, ...OTHER_WARNINGS])]

export type WarningCode = (typeof ALL_WARNINGS)[number]

/** Silences warnings, one by one: `{ SLUICE_ONE_CLIENT: false }`. */
export type WarningsOption<Code extends WarningCode> = { readonly [Each in Code]?: boolean }

export type StoreWarning = (typeof STORE_WARNINGS)[number]
export type StoreWarningsOption = WarningsOption<StoreWarning>
export type LimiterWarning = (typeof LIMITER_WARNINGS)[number]
export type LimiterWarningsOption = WarningsOption<LimiterWarning>

/** The warnings of one limiter or store: emitted by `process.emitWarning`, as a `SluiceWarning` with a code. */
export class Warnings<Code extends WarningCode> {
  readonly #silenced: ReadonlySet<string>
  /** Bound, so that it can be passed on. */
  readonly emit: (code: Code, message: string) => void
  /** Adds to a message about a source without a name where it was made. */
  readonly withPlace: (message: string) => string

  /**
   * `codes`: the codes of this source.
   *
   * `listeners`: of the limiter or store that they are about. `isNew`: false where another of these has emitted the
   * same warning already.
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(
    where: string,
    codes: readonly Code[],
    option: WarningsOption<Code> = {},
    listeners: Audience<{ warning: WarningEvent }> = new Listeners(where, ['warning']),
    isNew: (code: Code, message: string) => boolean = () => true,
  ) {
    if (!isRecord(option)) {
      invalidPolicy(where, 'warnings', `an object such as { ${codes[0]}: false }`, option)
    }
    for (const [code, emitted] of Object.entries(option)) {
      if (!codes.includes(code as Code)) throw unknownCode(where, code, codes)
      if (typeof emitted !== 'boolean') invalidPolicy(where, `warnings: ${code}`, 'true or false', emitted)
    }
    this.#silenced = new Set(codes.filter((code) => Object.hasOwn(option, code) && option[code] === false))
    if (this.#silenced.has('SLUICE_LISTENER_FAILED')) listeners.isSilent = true
    this.withPlace = (message) => listeners.madeAt?.withPlace(message) ?? message
    this.emit = (code, message) => {
      if (!this.#silenced.has(code) && isNew(code, message)) emitWarning(code, this.withPlace(message), listeners)
    }
  }
}

function unknownCode(where: string, code: string, codes: readonly WarningCode[]): SluiceError {
  const hint = ALL_WARNINGS.includes(code as WarningCode)
    ? `it is emitted elsewhere; silence it with node --disable-warning=${code}`
    : hintFor(code, codes)
  const instead = hint === undefined ? ` (the codes are ${codes.join(', ')})` : `: ${hint}`
  return new SluiceError('INVALID_POLICY', `${where}: warnings: ${show(code)}: unknown code${instead}`)
}

/** Without `listeners`: for events outside of any limiter or store. */
export function emitWarning(
  code: WarningCode,
  message: string,
  listeners: Audience<{ warning: WarningEvent }> = everywhere,
): void {
  processWarning(code, message)
  if (listeners.hasListeners('warning')) listeners.send('warning', { code, message })
}
