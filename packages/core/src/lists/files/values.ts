import { show } from '../../util/errors.js'

/** As long as a block's reason may be. */
const LONGEST_REASON = 200

export function cutReason(reason: unknown): string | undefined {
  return typeof reason === 'string' && reason !== '' ? reason.slice(0, LONGEST_REASON) : undefined
}

/** A value of a file, for messages: data, so without anything that runs. */
export function shown(value: unknown): string {
  return show(value)
}
