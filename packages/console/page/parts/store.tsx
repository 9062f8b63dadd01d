import type { About } from '../answers.js'
import { Chip, Time } from './basics.js'

export const isInMemory = ({ kind = '' }: About['store']): boolean => kind.startsWith('memory')

/** The store, and how it is. */
export function StoreChip({ store }: { store: About['store'] }) {
  const { kind = 'store', state, since, roundTripMs } = store
  const name = isInMemory(store) ? 'Store in memory' : kind === 'redis' ? 'Redis' : kind
  return (
    <span class="store">
      <Chip tone={state === 'available' ? 'good' : 'bad'}>{state === 'available' ? 'available' : 'away'}</Chip> {name}{' '}
      {since !== undefined && (
        <>
          since <Time at={since} />
        </>
      )}
      {roundTripMs !== undefined && roundTripMs > 0 && <>, round trip {roundTripMs.toFixed(1)} ms</>}
    </span>
  )
}
