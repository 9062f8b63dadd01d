import type { GuardFeature } from '../../http/guard/guard-feature.js'
import type { LimiterFeature } from '../../limiter/engine.js'
import type { PolicyBasis } from '../../policy/policy-feature.js'
import { givenLists } from '../../store/list.js'
import type { Store } from '../../store/store.js'
import { wrongPolicy } from '../../util/errors.js'
import { addFeature, type FeatureName } from './lean-feature.js'

/** The checks of a composition without a feature, besides those of the feature's options. */
type Absence = LimiterFeature & Pick<GuardFeature, 'guard'>

/** By the feature that is not there. */
export const ABSENT: Readonly<Partial<Record<FeatureName, Absence>>> = {
  // A store with lists would admit whom it denies.
  lists: {
    limiter: ({ policy: { where }, store }) => refuseLists(where, store),
    guard: ({ where, engine: { store } }) => refuseLists(where, store),
  },
  queues: {
    policy: refuseQueueing,
    guard({ where, responders }) {
      const refuse = (what: string) => wrongPolicy(`${where}: respond: ${what}: ${addFeature('queues')}`)
      if (responders.queues) refuse('queue')
      // A responder of the user's own may wait without saying so. No limit books a turn, as the policy is rejected.
      const wait = async () => refuse('waitTurn')
      return { waits: { areBefore: () => false, inQueue: wait, forTurn: wait } }
    },
  },
  outcomes: { policy: ({ where, limits }) => refuseUnit(where, limits, 'content-bytes', 'outcomes') },
  responseBytes: { policy: ({ where, limits }) => refuseUnit(where, limits, 'response-bytes', 'responseBytes') },
}

function refuseLists(where: string, store: Store): undefined {
  if (givenLists(store)) wrongPolicy(`${where}: store: it has lists: ${addFeature('lists')}`)
}

function refuseUnit(where: string, limits: PolicyBasis['limits'], unit: string, feature: FeatureName): undefined {
  if (limits.some((limit) => limit.unit === unit)) wrongPolicy(`${where}: unit "${unit}": ${addFeature(feature)}`)
}

/** A limit that books turns needs what waits for them. */
function refuseQueueing({ where, limits }: PolicyBasis): undefined {
  // Whether a limit queues depends on none of its numbers.
  const queues = limits.some((limit) => limit.algorithm === 'leakyBucket' && limit.resolve(where, 1, 1000).report.queue)
  if (queues) wrongPolicy(`${where}: leakyBucket: queue: ${addFeature('queues')}`)
}
