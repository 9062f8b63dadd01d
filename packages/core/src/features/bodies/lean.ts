import type { LeanFeature } from '../lean/lean-feature.js'
import { responseBytes as guard } from './request-feature.js'

/** Limits of `response-bytes`, and `onExhausted`. */
export const responseBytes: LeanFeature<'responseBytes'> = { name: 'responseBytes', limiter: {}, guard }
