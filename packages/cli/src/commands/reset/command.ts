import type { KeptState } from '@sluice/core'
import { isCountOf, resetCounts, tableOf } from '@sluice/core/internal'
import { agreed } from '../../program/agreed.js'
import { authorOf, BY_OPTION } from '../../program/author.js'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { identityOf } from '../../program/identity.js'
import { withProgress } from '../../program/progress.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { usable } from '../../redis/usable.js'

type Counts = KeptState['counts']

export const reset: Command = {
  name: 'reset',
  summary: 'forget what an identity has used',
  description: `Forgets what an identity has used of its limits, so that they are as good as new: by all policies, or by one. Permits
that it holds are free again. Blocks, bans and strikes stay: unblock ends them. Shows what it finds, and asks first.`,
  operands: { placeholder: 'KIND=VALUE', min: 1, max: 1 },
  options: {
    policy: { type: 'string', placeholder: 'NAME', text: 'the policy that counts it', default: 'all' },
    yes: { type: 'boolean', short: 'y', text: 'do not ask' },
    ...BY_OPTION,
    ...REDIS_OPTIONS,
  },
  examples: ['REDIS_URL=redis://host:6379 sluice reset user=ann', 'sluice reset ip=192.0.2.7 --policy api --yes'],
  notes: `Processes may go on refusing for up to a second.\n${EXIT_CODES}`,

  async run({ policy, yes, ...values }, environment, [operand]) {
    const identity = identityOf(operand as string)
    const { stdout, stderr } = environment
    return withStore(values, environment, async (store) => {
      const kept = await withProgress(stderr, 'looking through the keys', () => usable(() => store.kept(identity)))
      const counts = kept.counts.filter((count) => policy === undefined || isCountOf(count, String(policy)))
      if (counts.length === 0) {
        stderr.write(`sluice: nothing is counted of ${operand} by ${policy ?? 'any policy'}\n`)
        return REFUSED
      }
      if (!values.json) stdout.write(countsTable(counts))
      if (!yes && !(await agreed(environment, 'Forget it?', 'forgets it'))) {
        stderr.write('sluice: nothing was changed\n')
        return REFUSED
      }
      const change = {
        by: authorOf(values, environment),
        action: 'reset',
        ...(policy !== undefined && { policy: String(policy) }),
        identity: kept.identity,
        before: { counts },
      }
      await store.changes.record(change, () => resetCounts(store, { identity: kept.identity, counts }))
      stdout.write(
        values.json ? `${JSON.stringify({ identity: kept.identity, counts }, null, 2)}\n` : 'it is forgotten\n',
      )
      return DONE
    })
  },
}

function countsTable(counts: Counts): string {
  return tableOf(
    ['policy', 'count'],
    counts.map(({ policy, cell }) => [policy, cell]),
  )
}
