// Release: runs the documentation.
import { readFileSync } from 'node:fs'
import { createLimiter, memoryStore, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { limitOf } from '../../contract/limit-of.js'
import { Clock, MIDNIGHT } from '../../contract/store-under-test.js'
import { arrivals, type RefundTraffic, TRAFFIC } from '../../support/oracle/refund-traffic.js'
import { type Kept, RememberingBucket } from '../../support/oracle/refunds.js'

const GUARANTEES = new URL('../../../docs/guarantees.md', import.meta.url)

/** A bucket as its users see it: charges while there is room, and refunds. */
interface Bucket<Charge> {
  charge(at: number, cost: number): Promise<Charge | undefined>
  refund(at: number, charge: Charge, units: number): Promise<void>
}

/** The number of admitted requests. */
async function play<Charge>(traffic: RefundTraffic, bucket: Bucket<Charge>): Promise<number> {
  const open: { endsAt: number; back: number; charge: Charge }[] = []
  const endUntil = async (at: number) => {
    open.sort((a, b) => a.endsAt - b.endsAt)
    while (open[0] && open[0].endsAt <= at) {
      const { endsAt, back, charge } = open.shift() as (typeof open)[number]
      await bucket.refund(endsAt, charge, back)
    }
  }
  let admitted = 0
  for (const { at, back, endsAt } of arrivals(traffic)) {
    await endUntil(at)
    const charge = await bucket.charge(at, traffic.cost)
    if (charge === undefined) continue
    admitted++
    if (back > 0) open.push({ endsAt, back, charge })
  }
  await endUntil(Number.POSITIVE_INFINITY)
  return admitted
}

/** A bucket that refunds everything. */
function ideal({ spec }: RefundTraffic): Bucket<Kept> {
  const bucket = new RememberingBucket(spec)
  return {
    async charge(at, cost) {
      bucket.goTo(at, false)
      return bucket.room < cost ? undefined : bucket.charge(cost)
    },
    async refund(at, remembered, units) {
      bucket.goTo(at, false)
      bucket.refund(remembered, units)
    },
  }
}

/**
 * The room that a bucket lacks compared with one that refunds everything, for the same charges: the average after
 * refunds, in percent.
 */
class Missing {
  #sum = 0
  #refunds = 0

  add(percent: number): void {
    this.#sum += percent
    this.#refunds++
  }

  get percent(): number {
    return this.#sum / this.#refunds
  }
}

function ofSluice({ spec }: RefundTraffic, missing: Missing): Bucket<{ verdict: Verdict; remembered: Kept }> {
  const clock = new Clock()
  const limiter = createLimiter({ store: memoryStore({ clock: clock.read }), limits: [limitOf(spec)] })
  const bucket = new RememberingBucket(spec)
  return {
    async charge(at, cost) {
      clock.now = MIDNIGHT + at
      bucket.goTo(at, false)
      const verdict = await limiter.consume('k', { cost })
      return verdict.allowed ? { verdict, remembered: bucket.charge(cost) } : undefined
    },
    async refund(at, { verdict, remembered }, units) {
      clock.now = MIDNIGHT + at
      bucket.goTo(at, false)
      await verdict.settle(verdict.cost - units)
      bucket.refund(remembered, units)
      const { remaining } = await limiter.peek('k')
      missing.add((100 * (bucket.room - remaining)) / spec.capacity)
    },
  }
}

test('guarantees.md has the loss of overlapping refunds of buckets as measured', {
  timeout: 300_000,
}, async () => {
  const rows = []
  for (const traffic of TRAFFIC) {
    const missing = new Missing()
    const most = await play(traffic, ideal(traffic))
    const admitted = await play(traffic, ofSluice(traffic, missing))
    rows.push(`| ${traffic.title} | ${missing.percent.toFixed(1)} % | ${((100 * admitted) / most).toFixed(1)} % |`)
  }
  expect(readFileSync(GUARANTEES, 'utf8')).toContain(rows.join('\n'))
})
