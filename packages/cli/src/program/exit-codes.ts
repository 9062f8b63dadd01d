/** Exit codes: done; refused or not found; wrong usage, or a command that failed, such as without Redis. */
export const DONE = 0
export const REFUSED = 1
export const FAILED = 2
/** Their explanation in the help. */
export const EXIT_CODES =
  'Exit code: 0 done, 1 refused or not found, 2 wrong usage, or Redis or PostgreSQL cannot be used.'
