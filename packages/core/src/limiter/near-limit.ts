import { invalidPolicy, SluiceError } from '../util/errors.js'
import type { Listeners } from '../util/listeners.js'
import { knownOptions } from '../util/validate.js'
import type { ListenOptions, NearLimitEvent } from './events.js'

/** The change that an admission made in the use of a limit. Each listener has its own fraction. */
export interface LimitUse extends Omit<NearLimitEvent, 'at'> {
  /** The use before it. */
  readonly before: number
}

/**
 * Adds a listener. For `near-limit`, it is called only when its fraction is crossed.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function listen(
  // biome-ignore lint/suspicious/noExplicitAny: limiters and the whole process have other events
  listeners: Listeners<any>,
  where: string,
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: the event that belongs to the name
  listener: (event: any) => unknown,
  options: ListenOptions = {},
): () => void {
  knownOptions(`${where}: on`, options, ['at'])
  if (name !== 'near-limit') {
    if (options.at === undefined) return listeners.on(name, listener)
    throw new SluiceError('INVALID_POLICY', `${where}: on: at: expected none but for near-limit`)
  }
  const { at = 0.8 } = options
  if (typeof at !== 'number' || !(at > 0 && at <= 1))
    invalidPolicy(`${where}: on`, 'at', 'a number above 0, up to 1', at)
  if (typeof listener !== 'function') return listeners.on(name, listener)
  return listeners.on(name, ({ before, ...use }: LimitUse) => {
    if (before < at && use.used >= at) return listener({ ...use, at })
  })
}
