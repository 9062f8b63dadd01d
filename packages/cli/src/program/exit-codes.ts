/** Exit codes of commands that show or change what is in Redis or PostgreSQL: done, or refused or not found. */
export const DONE = 0
export const REFUSED = 1
/** Their explanation in the help. */
export const EXIT_CODES =
  'Exit code: 0 done, 1 refused or not found, 2 wrong usage, or Redis or PostgreSQL cannot be used.'
