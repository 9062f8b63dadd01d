import type { LeanFeature } from '../lean/lean-feature.js'
import { meters as limiter } from './feature.js'

/** `verdict.meter`. */
export const meters: LeanFeature<'meters'> = { name: 'meters', limiter }
