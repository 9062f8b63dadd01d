/** `@sluice/console/internal`: parts for the other `@sluice/` packages. Semver does not cover it. */

export { readBody } from '../body.js'
export { type Console, makeConsole, type OwnServer } from '../console.js'
export type { Exchange, Reply } from '../exchange.js'
export { Problem } from '../problem.js'
export { jsonReply } from '../reply.js'
