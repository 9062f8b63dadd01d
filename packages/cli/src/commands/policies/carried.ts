import { type CarriedLimit, carriedLimits } from '@sluice/policies'

/** The limits whose counts stay or begin anew, as `--json` prints them. */
export function carriedOf(before: string | undefined, after: string): readonly CarriedLimit[] {
  return before === undefined ? [] : carriedLimits(before, after)
}

/** For people: a line for each limit of a policy, and one for all overrides of a policy. */
export function carriedLines(carried: readonly CarriedLimit[]): string[] {
  const own = carried.filter(({ override }) => override === undefined)
  const lines = own.map((each) => `  ${nameOf(each)}: ${outcomeOf(each)}`)
  const ofOverrides = new Map<string, CarriedLimit[]>()
  for (const each of carried) {
    if (each.override !== undefined) ofOverrides.set(each.policy, [...(ofOverrides.get(each.policy) ?? []), each])
  }
  for (const [policy, all] of ofOverrides) lines.push(`  overrides of ${policy}: ${summaryOf(all)}`)
  return lines
}

function nameOf({ policy, tier, limit }: CarriedLimit): string {
  return `${policy}${tier === undefined ? '' : `, tier ${tier}`}, limit ${limit}`
}

function outcomeOf({ isKept, why }: CarriedLimit): string {
  return isKept ? 'what was used still counts' : `begins anew: ${why}`
}

function summaryOf(all: readonly CarriedLimit[]): string {
  const anew = all.filter(({ isKept }) => !isKept)
  const [first] = anew
  if (!first) return `what was used of ${limitsText(all.length)} still counts`
  const kept = anew.length < all.length ? `what was used of ${limitsText(all.length - anew.length)} still counts; ` : ''
  return `${kept}${limitsText(anew.length)} begin${anew.length === 1 ? 's' : ''} anew, the first: ${first.why}`
}

function limitsText(count: number): string {
  return count === 1 ? '1 limit' : `${count} limits`
}
