import { invalidPolicy } from './errors.js'
import { nearestOf } from './option-hints.js'

/** Where each code is explained. One constant: a page of the documentation once that has an address. */
const EXPLAINED_IN = 'ERRORS.md'

/** Every warning that there is. `docs/errors.md` has a section for each: its cause, and what to do. */
export const WARNING_CODES = [
  'SLUICE_AMBIGUOUS_ROUTE',
  'SLUICE_COUNT_FAILED',
  'SLUICE_EVICTION',
  'SLUICE_INVALID_REQUEST',
  'SLUICE_LISTENER_FAILED',
  'SLUICE_MANY_LIMITERS',
  'SLUICE_ONE_CLIENT',
  'SLUICE_OPEN_PROXY',
  'SLUICE_SAME_LIMITER_TWICE',
  'SLUICE_SAME_NAME',
  'SLUICE_SHORT_WINDOW',
  'SLUICE_STORE_UNAVAILABLE',
  'SLUICE_UNGROUPED_IPV6',
  'SLUICE_UNTRUSTED_PROXY',
] as const

export type WarningCode = (typeof WARNING_CODES)[number]

/**
 * Silences warnings, one by one: `{ SLUICE_ONE_CLIENT: false }`.
 *
 * @default every warning is emitted
 */
export type WarningsOption = { readonly [Code in WarningCode]?: boolean }

/** The warnings of one limiter or store: emitted by `process.emitWarning`, as a `SluiceWarning` with a code. */
export class Warnings {
  readonly #silenced: ReadonlySet<string>

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(where: string, option: WarningsOption = {}) {
    if (typeof option !== 'object' || option === null || Array.isArray(option)) {
      invalidPolicy(where, 'warnings', 'an object such as { SLUICE_ONE_CLIENT: false }', option)
    }
    for (const [code, emitted] of Object.entries(option)) {
      if (!WARNING_CODES.includes(code as WarningCode)) {
        const nearest = nearestOf(code, WARNING_CODES)
        invalidPolicy(where, 'warnings', nearest ?? `one of ${WARNING_CODES.join(', ')}`, code)
      }
      if (typeof emitted !== 'boolean') invalidPolicy(where, `warnings: ${code}`, 'true or false', emitted)
    }
    this.#silenced = new Set(Object.keys(option).filter((code) => option[code as WarningCode] === false))
  }

  isSilenced(code: WarningCode): boolean {
    return this.#silenced.has(code)
  }

  emit(code: WarningCode, message: string): void {
    if (!this.#silenced.has(code)) emitWarning(code, message)
  }
}

/** For what happens outside of any limiter or store. */
export function emitWarning(code: WarningCode, message: string): void {
  process.emitWarning(`${message} (see ${EXPLAINED_IN}#${code.toLowerCase()})`, { type: 'SluiceWarning', code })
}
