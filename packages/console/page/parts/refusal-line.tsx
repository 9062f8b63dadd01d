import { useMemo } from 'preact/hooks'
import type { KnownRefusals } from '../answers.js'
import { Time } from './basics.js'
import { Chart } from './chart.js'

const MINUTE_MS = 60_000
/** Refusals are kept for 15 minutes. */
const MINUTES = 15

/** The refusals of a client a minute, up to `now`. Minutes of which not all refusals are known have a gap. */
export function RefusalLine({ of: { refusals, knownSince = 0 }, now }: { of: KnownRefusals; now: number }) {
  const at = useMemo(() => Array.from({ length: MINUTES }, (_, i) => now - (MINUTES - 1 - i) * MINUTE_MS), [now])
  const curves = useMemo(() => {
    const countUntil = (end: number) => refusals.filter((each) => each.at > end - MINUTE_MS && each.at <= end).length
    const values = at.map((end) => (end - MINUTE_MS < knownSince ? null : countUntil(end)))
    return [{ name: 'refusals a minute', colour: '--curve-2', values, isFilled: true }]
  }, [at, refusals, knownSince])
  if (refusals.length === 0) return null
  const isKnown = curves.some(({ values }) => values.some((value) => value !== null))
  return (
    <>
      {isKnown && <Chart name="Refusals of this client a minute" {...{ at, curves }} height={120} />}
      <p class="muted below">
        From the refusals that processes record, the last 200 of each. What was admitted is not kept for single clients.
        {knownSince > 0 && (
          <>
            {' '}
            The line begins at <Time at={knownSince} />: newer refusals have replaced earlier ones.
          </>
        )}
      </p>
    </>
  )
}
