import { durationText, inLine, instantText, tableOf } from '@sluice/core/internal'
import type { LimitNumbers, PlannedOverride, SavedOverride } from '@sluice/policies'

/** Overrides for people. */
export function overridesTable(overrides: readonly SavedOverride[]): string {
  return tableOf(
    ['policy', 'client', 'limits', 'until', 'by', 'at', 'reason'],
    overrides.map(({ policy, kind, value, limits, until, by, at, reason }) => [
      policy,
      `${kind}=${value}`,
      JSON.stringify(limits),
      until === undefined ? 'no end' : instantText(until),
      by || '–',
      instantText(at),
      reason,
    ]),
  )
}

/** The effect of an override for people. */
export function planText({ policy, kind, value, until, before, changes, advice }: PlannedOverride): string {
  const lines = changes.map(({ tier, limit, before, after, isKept }) => {
    const counts = isKept ? 'what was used still counts' : 'begins anew'
    return `  ${tier === undefined ? '' : `tier ${tier}, `}limit ${limit}: ${textOf(before)} → ${textOf(after)}: ${counts}`
  })
  return [
    inLine(`policy ${policy}: ${kind}=${value}, until ${instantText(until)}`),
    ...(lines.length > 0 ? lines : ['  no number is different']),
    ...advice.map((each) => `  note: ${each}`),
    ...(before ? ['it replaces:', overridesTable([before]).trimEnd()] : []),
    '',
  ].join('\n')
}

function textOf({ algorithm, limit, window }: LimitNumbers): string {
  return `${algorithm} ${limit}${window === undefined ? '' : ` per ${typeof window === 'number' ? durationText(window) : window}`}`
}
