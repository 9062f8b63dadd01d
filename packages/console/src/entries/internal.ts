/** `@sluice/console/internal`: parts for the other `@sluice/` packages. Semver does not cover it. */

export { type Console, makeConsole } from '../console.js'
export { Problem } from '../problem.js'
export { object, route } from '../routes/route.js'
export { isFixedHost } from '../safe/hosts.js'
export { Link, refuseForwarded } from '../safe/link.js'
