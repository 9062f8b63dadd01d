import { BATCH_BOUNDS } from '../store/health.js'
import { propertyOf } from '../util/property-of.js'
import { histogramMetric, type Metric, type NumberMetric, numberMetric, type Shape } from './described.js'
import type { StoreCounts } from './snapshot.js'

const STORE = ['store']

/** The metrics of stores, and those that belong to no policy. */
export const STORE_METRICS: readonly Metric[] = [
  storeMetric(
    'sluice.store.available',
    'gauge',
    { unit: '', help: 'Whether the store decides: 1, or 0 in an outage.', acrossProcesses: 'min' },
    ({ state }) => (state === 'available' ? 1 : 0),
  ),
  storeSum('pending', '{decision}', 'Decisions that wait for a reply of the store.', ({ pending }) => pending),
  histogramMetric(
    'sluice.batch.size',
    BATCH_BOUNDS,
    { unit: '{decision}', help: 'Decisions that went to Redis in one script execution.', labels: STORE },
    ({ stores }) =>
      stores.flatMap((of) => {
        const batches = propertyOf(of, 'batches')
        return batches ? [{ labels: { store: of.store }, ...batches }] : []
      }),
  ),
  storeSum('keys', '{key}', 'States that the memory store keeps.', ({ keys }) => keys),
  storeSum(
    'max_keys',
    '{key}',
    'maxKeys of the memory store: beyond it states are forgotten.',
    (store) => store.maxKeys,
  ),
  storeSum('size', 'By', 'Memory that states and blocks take in the memory store, as estimated.', ({ bytes }) => bytes),
  storeSum(
    'max_size',
    'By',
    'maxBytes of the memory store: beyond it states are forgotten.',
    (store) => store.maxBytes,
  ),
  storeMetric(
    'sluice.store.blocked',
    'gauge',
    { unit: '{identity}', help: 'Blocks and bans that this process holds.', acrossProcesses: 'max' },
    ({ blocked }) => blocked,
  ),
  numberMetric(
    'sluice.warnings',
    'counter',
    { unit: '{warning}', help: 'Warnings that were emitted, by code.', labels: ['code'] },
    ({ warnings }) => warnings.map(({ code, count }) => ({ labels: { code }, value: count })),
  ),
  numberMetric(
    'sluice.policies.reloads',
    'counter',
    { unit: '{reload}', help: 'Documents of policies that came into force after the first.' },
    ({ policiesReloaded }) => [{ labels: {}, value: policiesReloaded }],
  ),
]

type NumberOf = (counts: StoreCounts) => number | undefined

/** A metric of each store that has this number, which may be added up. */
function storeSum(name: string, unit: string, help: string, numberOf: NumberOf): NumberMetric {
  return storeMetric(`sluice.store.${name}`, 'updowncounter', { unit, help }, numberOf)
}

/** A metric of each store that has this number. */
function storeMetric(name: string, type: NumberMetric['type'], shape: Shape, numberOf: NumberOf): NumberMetric {
  return numberMetric(name, type, { ...shape, labels: STORE }, ({ stores }) =>
    stores.flatMap((counts) => {
      const value = numberOf(counts)
      return value === undefined ? [] : [{ labels: { store: counts.store }, value }]
    }),
  )
}
