import { agreed } from '../../program/agreed.js'
import { authorOf, BY_OPTION } from '../../program/author.js'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { identityOf } from '../../program/identity.js'
import { withProgress } from '../../program/progress.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { inspected, isNothing } from '../inspect/inspected.js'
import { textOf } from '../inspect/text.js'

export const forget: Command = {
  name: 'forget',
  summary: 'erase everything that Redis stores of an identity',
  description: `Erases what Redis keeps of an identity: counts, strikes, rungs, blocks, bans, its entries of lists, and how often it
was refused. Shows what it finds, and asks first. Blocks of networks that it is in stay. Looks through all keys twice,
some at a time.`,
  operands: { placeholder: 'KIND=VALUE', min: 1, max: 1 },
  options: { yes: { type: 'boolean', short: 'y', text: 'do not ask' }, ...BY_OPTION, ...REDIS_OPTIONS },
  examples: ['REDIS_URL=redis://host:6379 sluice forget user=ann', 'sluice forget ip=192.0.2.7 --yes --json'],
  notes: `Where it is interrupted, a part may be left: run it again.\n${EXIT_CODES}`,

  async run({ yes, ...values }, environment, [operand]) {
    const identity = identityOf(operand as string)
    const { stdout, stderr } = environment
    return withStore(values, environment, async (store) => {
      const found = await withProgress(stderr, 'looking through the keys', () => inspected(store, identity, undefined))
      if (!values.json) {
        stdout.write(textOf(found))
        if (isNothing(found)) stdout.write('it may have been counted among those that are refused most\n')
      }
      if (!yes && !(await agreed(environment, 'Erase it?', 'erases it'))) {
        stderr.write('sluice: nothing was changed\n')
        return REFUSED
      }
      // The entry of this change does not name the identity either.
      const change = { by: authorOf(values, environment), action: 'forget' }
      await withProgress(stderr, 'erasing', () => store.changes.record(change, () => store.forget(identity)))
      stdout.write(values.json ? `${JSON.stringify(found, null, 2)}\n` : 'it is erased\n')
      return DONE
    })
  },
}
