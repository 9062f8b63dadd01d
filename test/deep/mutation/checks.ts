import { checkVector } from '../../../packages/testing/src/vectors/check.js'
import { VECTORS } from '../../../packages/testing/src/vectors/vector.js'
import { aheadChecks } from './ahead.js'
import { blockIndexChecks } from './block-index.js'
import { calendarChecks } from './calendars.js'
import { carriedChecks } from './carried.js'
import type { Check } from './check.js'
import { banChecks } from './composed-strikes.js'
import { deniedChecks } from './denied.js'
import { effortChecks } from './effort.js'
import { crossSlotsChecks, elsewhereChecks, elsewhereInPartChecks } from './elsewhere.js'
import { exchangeChecks } from './exchange.js'
import { figuresChecks } from './figures.js'
import { keptChargeChecks } from './kept-charges.js'
import { learnedQuotaChecks } from './learned-quotas.js'
import { markerChecks } from './markers.js'
import { ownClockChecks } from './own-clock.js'
import { refusalChecks } from './refusals.js'
import { replay } from './replay.js'
import { roomChecks } from './room.js'
import { rungChecks } from './rungs.js'
import { serverTimeChecks } from './server-time.js'
import { sharedKeyChecks } from './shared-keys.js'
import { smallScriptChecks } from './small-scripts.js'
import { strangerChecks } from './strangers.js'
import { strikeChecks } from './strikes.js'
import { turnChecks } from './turns.js'
import { scenarios } from './walks.js'

/** All checks of a mutant, those with the clearest failures first. */
export async function allChecks(): Promise<Check[]> {
  return [
    ...blockIndexChecks,
    ...rungChecks,
    ...smallScriptChecks,
    ...figuresChecks,
    ...learnedQuotaChecks,
    ...deniedChecks,
    ...(await sharedKeyChecks()),
    ...(await carriedChecks()),
    ...(await keptChargeChecks()),
    ...ownClockChecks,
    ...calendarChecks,
    ...aheadChecks,
    ...Object.entries(VECTORS).flatMap(([file, vectors]) =>
      vectors.map(
        (vector): Check => ({
          name: `${file}: ${vector.title}`,
          run: async ({ store, clock }) => {
            await checkVector(vector, store, (nowMs) => {
              clock.now = nowMs
            })
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
    ...banChecks,
    ...strikeChecks,
    ...turnChecks,
    ...exchangeChecks,
    ...elsewhereChecks,
    ...elsewhereInPartChecks,
    ...crossSlotsChecks,
    ...(await scenarios()).map(
      (scenario): Check => ({
        name: scenario.name,
        run: (venue) => replay(scenario, venue),
      }),
    ),
  ]
}
