import { COMMON_FORMATS } from './common.js'
import type { LogFormat } from './format.js'

/** The forms of logs that are recognised, the most specific first. */
export const FORMATS: readonly LogFormat[] = [...COMMON_FORMATS]
