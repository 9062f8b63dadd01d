import type { LeanFeature } from '../lean/lean-feature.js'
import { relaxed as limiter } from './feature.js'

/** `consistency`. */
export const relaxed: LeanFeature<'relaxed'> = { name: 'relaxed', limiter }
