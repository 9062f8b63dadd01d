import { checkedDocument } from '../../documents/checked.js'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { identityOf } from '../../program/identity.js'
import { withProgress } from '../../program/progress.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { inspected } from './inspected.js'
import { textOf } from './text.js'

export const inspect: Command = {
  name: 'inspect',
  summary: 'show what Redis stores of an identity',
  description: `Shows what Redis keeps of an identity: what it has used of each limit, its strikes, blocks and bans, and its lists.
With a file of policies, overrides that are for it, too. Charges nothing. Looks through all keys, some at a time.`,
  operands: { placeholder: 'KIND=VALUE', min: 1, max: 1 },
  options: {
    policies: {
      type: 'string',
      placeholder: 'FILE',
      text: 'policies, to show their limits and overrides',
      default: 'none',
    },
    ...REDIS_OPTIONS,
  },
  examples: [
    'REDIS_URL=redis://host:6379 sluice inspect ip=192.0.2.7',
    'sluice inspect user=ann --policies policies.yaml --json',
  ],
  notes: `While a block or ban holds, limits show without numbers.\n${EXIT_CODES}`,

  async run({ policies: file, ...values }, environment, [operand]) {
    const identity = identityOf(operand as string)
    const document = file === undefined ? undefined : checkedDocument(String(file), environment)
    if (file !== undefined && document === undefined) return REFUSED
    const { stdout, stderr } = environment
    const found = await withStore(values, environment, (store) =>
      withProgress(stderr, 'looking through the keys', () => inspected(store, identity, document)),
    )
    stdout.write(values.json ? `${JSON.stringify(found, null, 2)}\n` : textOf(found))
    return DONE
  },
}
