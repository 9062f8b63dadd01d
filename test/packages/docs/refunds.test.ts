import { readFileSync } from 'node:fs'
import { createLimiter, memoryStore, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { limitOf } from '../../contract/limit-of.js'
import { Clock, MIDNIGHT } from '../../contract/store-under-test.js'
import { arrivals, type RefundTraffic, TRAFFIC } from '../../support/oracle/refund-traffic.js'
import { type Kept, RememberingBucket } from '../../support/oracle/refunds.js'

const GUARANTEES = new URL('../../../docs/guarantees.md', import.meta.url)

/** A bucket as traffic sees it: charges where there is room, and refunds. */
interface Bucket<Charge> {
  charge(at: number, cost: number): Promise<Charge | undefined>
  refund(at: number, charge: Charge, units: number): Promise<void>
}

/** How many of the requests are admitted. */
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

/** A bucket that refunds all that is owed. */
function ideal({ spec }: RefundTraffic): Bucket<Kept> {
  const bucket = new RememberingBucket(spec)
  return {
    async charge(at, cost) {
      bucket.goTo(at, false)
      return bucket.room < cost ? undefined : bucket.charge(cost)
    },
    async refund(at, kept, units) {
      bucket.goTo(at, false)
      bucket.refund(kept, units)
    },
  }
}

/** What room is missing that a bucket would have that refunds all, of the same charges: on average after refunds, in percent. */
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

function ofSluice({ spec }: RefundTraffic, missing: Missing): Bucket<{ verdict: Verdict; kept: Kept }> {
  const clock = new Clock()
  const limiter = createLimiter({ store: memoryStore({ clock: clock.read }), limits: [limitOf(spec)] })
  const bucket = new RememberingBucket(spec)
  return {
    async charge(at, cost) {
      clock.now = MIDNIGHT + at
      bucket.goTo(at, false)
      const verdict = await limiter.consume('k', { cost })
      return verdict.allowed ? { verdict, kept: bucket.charge(cost) } : undefined
    },
    async refund(at, { verdict, kept }, units) {
      clock.now = MIDNIGHT + at
      bucket.goTo(at, false)
      await verdict.settle(verdict.cost - units)
      bucket.refund(kept, units)
      const { remaining } = await limiter.peek('k')
      missing.add((100 * (bucket.room - remaining)) / spec.capacity)
    },
  }
}

test('guarantees.md says what refunds of buckets lose where they overlap, as it is today', {
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
