import type { PolicyBasis, PolicyPart } from '../../policy/policy-feature.js'
import type { SharesTurns } from '../../store/store.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { invalidPolicy, wrongPolicy } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'

export interface SharedTurnsOptions {
  /**
   * How long other processes trust a report of waiting requests by this one: 100 ms to 1 minute.
   *
   * A process that dies delays others for at most this time, and one that is stalled for longer is overtaken.
   * @default '500ms'
   */
  readonly ttl?: Duration
}

/** The option of a policy. */
export interface SharedTurnsOption {
  /**
   * Whether requests wait for their turn across all processes that share the store.
   *
   * While one waits in any process, none of a lower priority is admitted in another. See docs/queues.md.
   * Changes nothing on a memory store.
   * @default false
   */
  readonly sharedTurns?: boolean | SharedTurnsOptions
}

/** @throws SluiceError `INVALID_POLICY` */
export function addSharedTurns(
  { where, limits }: PolicyBasis,
  { sharedTurns: option }: SharedTurnsOption,
): PolicyPart | undefined {
  const sharesTurns = sharedTurnsFor(where, option, limits)
  return sharesTurns && { terms: () => ({ sharesTurns }) }
}

const [LEAST_TTL_MS, MAX_TTL_MS] = [100, 60_000]

/** @throws SluiceError `INVALID_POLICY` */
function sharedTurnsFor(
  where: string,
  option: boolean | SharedTurnsOptions = false,
  limits: readonly { readonly lease?: unknown }[],
): SharesTurns | undefined {
  if (option === false) return undefined
  const options = option === true ? {} : option
  if (typeof options !== 'object' || options === null) {
    invalidPolicy(where, 'sharedTurns', "true, false or options such as { ttl: '500ms' }", option)
  }
  if (limits.some(({ lease }) => lease !== undefined)) {
    // A process spends units that it has taken ahead without asking whether any request waits elsewhere.
    wrongPolicy(`${where}: sharedTurns: expected none beside lease`)
  }
  knownOptions(`${where}: sharedTurns`, options, ['ttl'])
  const { ttl = '500ms' } = options
  const ttlMs = durationMs(`${where}: sharedTurns`, 'ttl', ttl)
  if (ttlMs < LEAST_TTL_MS || ttlMs > MAX_TTL_MS) {
    invalidPolicy(`${where}: sharedTurns`, 'ttl', "a duration from '100ms' to '1m'", ttl)
  }
  return Object.freeze({ ttlMs })
}
