import type { LimiterFeature } from '../../limiter/engine.js'
import { hasLists, ListedSubjects, type ListSources } from './listed-subjects.js'

const TEXTS: ListSources<unknown> = {
  addressOf: () => undefined,
  moreKeys: () => undefined,
  moreKinds: [],
  denyOptions: [],
}
/** Lists for arguments that are objects, without HTTP: their address is `ip`. */
const OBJECTS: ListSources<unknown> = {
  ...TEXTS,
  addressOf: (subject) => (subject as { ip?: unknown } | null | undefined)?.ip,
  moreKinds: ['ip'],
}

/** Lists that admit or refuse before the limits: `allow` and `deny`, of a limiter and of its store. */
export const lists: LimiterFeature = {
  limiterOptions: ['allow', 'deny'],
  limiter({ policy, store, warnings, areTexts }, options) {
    if (!hasLists(options, store)) return undefined
    return new ListedSubjects(policy, store, options, warnings, areTexts ? TEXTS : OBJECTS)
  },
}
