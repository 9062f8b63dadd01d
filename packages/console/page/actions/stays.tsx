import type { WhyAnswer } from '../answers.js'
import { type Left, leftOf, Refusing } from '../pages/verdict.js'
import { Notice } from '../parts/basics.js'

/** Why a client is refused, as its page shows it. */
export interface KnownWhy {
  readonly why: WhyAnswer
  readonly at: number
}

/** Says before an action what would refuse the client after it. Nothing, where nothing would. */
export function Stays({ of, left }: { of: KnownWhy | undefined; left: Left }) {
  if (!of || of.why.now.length === 0) return null
  const why = leftOf(of.why, left)
  if (why.now.length + why.blocks.length + why.networks.length === 0) return null
  return (
    <Notice tone="warn">
      It stays refused:
      <Refusing {...{ why }} at={of.at} />
    </Notice>
  )
}
