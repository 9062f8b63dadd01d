import type { BlockEntry, Duration, RedisStore } from '@sluice/core'
import { blockBy, unblockBy } from '@sluice/core/internal'
import { agreed } from '../../program/agreed.js'
import { authorOf, BY_OPTION } from '../../program/author.js'
import type { Command, OptionSpec, OptionValues } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { identityOf } from '../../program/identity.js'
import { UsageError } from '../../program/usage-error.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { usable } from '../../redis/usable.js'
import { blocksTable } from './table.js'

const DEFAULT_MAX = 100

const LIST_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  policy: {
    type: 'string',
    placeholder: 'NAME',
    text: 'those of this policy, and those of every policy',
    default: 'all',
  },
  kind: { type: 'string', placeholder: 'KIND', text: 'those of this kind of identity, such as ip', default: 'all' },
  starts: { type: 'string', placeholder: 'TEXT', text: 'those whose value starts like this', default: 'all' },
  max: { type: 'string', placeholder: 'NUMBER', text: 'most that are listed', default: String(DEFAULT_MAX) },
  ...REDIS_OPTIONS,
}
const POLICY: Readonly<Record<string, OptionSpec>> = {
  policy: { type: 'string', placeholder: 'NAME', text: 'the policy that refuses it', default: 'every policy' },
}

export const blocks: Command = {
  name: 'blocks',
  summary: 'list blocked and banned identities',
  description: 'Lists blocks and bans that hold, in no order. Secrets and long values show as their hashes.',
  options: LIST_OPTIONS,
  examples: ['REDIS_URL=redis://host:6379 sluice blocks', 'sluice blocks --kind ip --starts 192.0.2. --json'],
  notes: EXIT_CODES,
  run: (values, environment) => listed(values, environment, () => true, 'no identity is blocked'),
}

export const bans: Command = {
  name: 'bans',
  summary: 'list banned identities, and the rung of each',
  description: 'Lists bans that hold, in no order, without blocks that were made by hand.',
  options: LIST_OPTIONS,
  examples: ['sluice bans', 'sluice bans --policy login --json'],
  notes: EXIT_CODES,
  run: (values, environment) => listed(values, environment, ({ ban }) => ban !== undefined, 'no identity is banned'),
}

export const block: Command = {
  name: 'block',
  summary: 'block an identity',
  description:
    'Refuses an identity, or a network of addresses, from now on: by one policy, or by all. Replaces the block that it has.',
  operands: { placeholder: 'KIND=VALUE', min: 1, max: 1 },
  options: {
    for: { type: 'string', placeholder: 'DURATION', text: 'how long, such as 30m, 12h or 7d; needed' },
    reason: { type: 'string', placeholder: 'TEXT', text: 'shown in verdicts', default: 'none' },
    ...POLICY,
    ...BY_OPTION,
    ...REDIS_OPTIONS,
  },
  examples: [
    'sluice block ip=192.0.2.0/24 --for 1d --reason scraping',
    'sluice block user=mallory --for 30d --policy mail',
  ],
  notes: EXIT_CODES,

  async run({ policy, for: duration, reason, ...values }, environment, [operand]) {
    const identity = identityOf(operand as string)
    if (typeof duration !== 'string') throw new UsageError('--for: expected a duration such as 1d')
    return withStore(values, environment, async (store) => {
      const scope = scopeOf(policy)
      const entry = await usable(() =>
        blockBy(store, authorOf(values, environment), identity, {
          ...scope,
          for: duration as Duration,
          ...(reason !== undefined && { reason: String(reason) }),
        }),
      )
      environment.stdout.write(
        values.json ? `${JSON.stringify(entry ?? null, null, 2)}\n` : blocksTable(entry ? [entry] : []),
      )
      return DONE
    })
  },
}

export const unblock: Command = {
  name: 'unblock',
  summary: 'end a block or ban',
  description:
    'Ends the block or ban of an identity, and forgets the strikes and the rung that led to it. Asks before it does.',
  operands: { placeholder: 'KIND=VALUE', min: 1, max: 1 },
  options: { ...POLICY, yes: { type: 'boolean', short: 'y', text: 'do not ask' }, ...BY_OPTION, ...REDIS_OPTIONS },
  examples: ['sluice unblock ip=192.0.2.7', 'sluice unblock user=ann --policy login --yes'],
  notes: EXIT_CODES,

  async run({ policy, yes, ...values }, environment, [operand]) {
    const identity = identityOf(operand as string)
    const { stdout, stderr } = environment
    return withStore(values, environment, async (store) => {
      const scope = scopeOf(policy)
      const entry = await usable(() => store.blocks.get(identity, scope))
      if (!entry) {
        const what = policy
          ? `is not blocked by ${policy}`
          : 'has no block for all policies: --policy NAME ends that of one'
        stderr.write(`sluice: ${operand} ${what}\n`)
        return REFUSED
      }
      if (!values.json) stdout.write(blocksTable([entry]))
      if (!yes && !(await agreed(environment, 'End it?', 'ends it'))) {
        stderr.write('sluice: nothing was changed\n')
        return REFUSED
      }
      await unblockBy(store, authorOf(values, environment), identity, scope)
      stdout.write(values.json ? `${JSON.stringify(entry, null, 2)}\n` : 'it is ended\n')
      return DONE
    })
  },
}

async function listed(
  { policy, kind, starts, max = String(DEFAULT_MAX), ...values }: OptionValues,
  environment: Parameters<Command['run']>[1],
  fits: (entry: BlockEntry) => boolean,
  none: string,
): Promise<number> {
  if (!/^[1-9]\d{0,6}$/.test(String(max))) throw new UsageError('--max: expected a whole number from 1 to 9999999')
  const query = { ...scopeOf(policy), ...text('kind', kind), ...text('prefix', starts) }
  const { entries, isAll } = await withStore(values, environment, (store) => taken(store, query, Number(max), fits))
  const { stdout, stderr } = environment
  if (values.json) stdout.write(`${JSON.stringify(entries, null, 2)}\n`)
  else stdout.write(entries.length === 0 ? `${none}\n` : blocksTable(entries))
  if (!isAll) stderr.write(`sluice: there may be more than these ${entries.length}: --max lists them\n`)
  return DONE
}

/** Up to `max` entries that fit, from as many pages as that takes. */
async function taken(
  store: RedisStore,
  query: object,
  max: number,
  fits: (entry: BlockEntry) => boolean,
): Promise<{ entries: BlockEntry[]; isAll: boolean }> {
  const entries: BlockEntry[] = []
  let cursor: string | undefined
  do {
    const page = await usable(() => store.blocks.list({ ...query, max: 1000, ...(cursor !== undefined && { cursor }) }))
    entries.push(...page.entries.filter(fits))
    cursor = page.cursor
  } while (cursor !== undefined && entries.length <= max)
  return { entries: entries.slice(0, max), isAll: entries.length <= max }
}

function scopeOf(policy: string | true | undefined): { policy?: string } {
  return text('policy', policy)
}

function text(name: string, value: string | true | undefined): { [name: string]: string } {
  return typeof value === 'string' ? { [name]: value } : {}
}
