import type { StoreWarning, Warnings } from '../../util/warnings.js'

/** How Redis 6.2, 7.0 and later ones refuse a command, in a script and outside. */
const REFUSED = /NOPERM|ACL failure|The user executing the script can|unknown command/i

/**
 * Warns, once per store, of a Redis that decides but does not let this process keep the index of blocks: no decision
 * fails because of that, so nothing else would show it.
 */
export class IndexWarning {
  readonly #warnings: Warnings<StoreWarning>
  #isWarned = false

  constructor(warnings: Warnings<StoreWarning>) {
    this.#warnings = warnings
  }

  failed(error: Error): void {
    if (this.#isWarned || !REFUSED.test(`${error.message} ${(error.cause as Error | undefined)?.message}`)) return
    this.#isWarned = true
    this.#warnings.emit(
      'SLUICE_BLOCKS_DENIED',
      'Redis does not let its user keep the index of blocks: blocks and bans end with an outage, and block() and unblock() ' +
        'fail. Grant the user what SECURITY.md lists',
    )
  }
}
