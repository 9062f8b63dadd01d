import type { LeanFeature } from '../lean/lean-feature.js'
import { lists as limiter } from './feature.js'
import { requestLists as guard } from './request-feature.js'

/** `allow` and `deny`. */
export const lists: LeanFeature<'lists'> = { name: 'lists', limiter, guard }
