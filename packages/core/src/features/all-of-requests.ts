import type { GuardComposition } from '../http/guard/parts.js'
import { ALL } from './all.js'
import { requestBans } from './bans/request-feature.js'
import { responseBytes } from './bodies/request-feature.js'
import { documents } from './documents/brought-guard.js'
import { requestLists } from './lists/request-feature.js'
import { outcomes } from './outcomes/request-feature.js'
import { requestQueues } from './queues/request-feature.js'

/** All features of guards, in the order of their steps. Apart from `all.ts`, as programs without HTTP do without them. */
export const ALL_OF_REQUESTS: GuardComposition = {
  ...ALL,
  guards: [documents, requestLists, outcomes, requestQueues, responseBytes, requestBans],
}
