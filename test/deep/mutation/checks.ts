import { allVectors } from '../../contract/vectors/vectors.js'
import { expectVector } from '../../contract/vectors.js'
import type { Check } from './check.js'
import { effortChecks } from './effort.js'
import { markerChecks } from './markers.js'
import { refusalChecks } from './refusals.js'
import { replay } from './replay.js'
import { roomChecks } from './room.js'
import { serverTimeChecks } from './server-time.js'
import { strangerChecks } from './strangers.js'
import { scenarios } from './walks.js'

/** Everything that is tried on a mutant, what is told best first. */
export async function allChecks(): Promise<Check[]> {
  return [
    ...allVectors().flatMap(({ file, vectors }) =>
      vectors.map(
        (vector): Check => ({
          name: `${file.replace('.json', '')}: ${vector.title}`,
          run: async ({ store, clock }) => {
            await expectVector(vector, store, clock)
            return undefined
          },
        }),
      ),
    ),
    ...strangerChecks,
    ...markerChecks,
    ...serverTimeChecks,
    ...roomChecks,
    ...effortChecks,
    ...refusalChecks,
    ...(await scenarios()).map(
      (scenario): Check => ({
        name: scenario.name,
        run: (venue) => replay(scenario, venue),
      }),
    ),
  ]
}
