import type { LeanFeature } from '../lean/lean-feature.js'
import { outcomes as guard } from './request-feature.js'

/** `count` and `body`, and limits of `content-bytes`. */
export const outcomes: LeanFeature<'outcomes'> = { name: 'outcomes', limiter: {}, guard }
