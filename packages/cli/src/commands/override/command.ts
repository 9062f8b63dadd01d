import { countedHash, isKind, isSecretKind, quoted } from '@sluice/core/internal'
import { OverrideConflict, type OverrideToSet, PoliciesError } from '@sluice/policies'
import { agreed } from '../../program/agreed.js'
import { authorOf, BY_OPTION } from '../../program/author.js'
import type { Command, CommandEnvironment, OptionValues } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { wholeNumberOption } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'
import { usable } from '../../redis/usable.js'
import { DOCUMENT_OPTIONS } from '../policies/documents.js'
import { withChanges, withPolicies } from './policies.js'
import { overridesTable, planText } from './text.js'

const DEFAULT_MAX = 100

export const override: Command = {
  name: 'override',
  summary: 'change the limits of one client until a date: set, list, remove',
  description: `Sets, lists and removes overrides beside the document of policies in Redis or PostgreSQL. An override changes limits
of one client, and ends by itself; the document and its versions stay as they are. Shows the effect, and asks first.`,
  operands: { placeholder: 'set KIND=VALUE | list | remove KIND=VALUE', min: 1, max: 2 },
  options: {
    policy: { type: 'string', placeholder: 'NAME', text: 'the policy of the document; needed by set and remove' },
    limit: { type: 'string', placeholder: 'NUMBER', text: 'for set: the number of the only limit' },
    limits: { type: 'string', placeholder: 'JSON', text: `for set: changes as in a document, '[{ "limit": 1000 }]'` },
    until: { type: 'string', placeholder: 'TIME', text: 'for set: 2030-01-31, or with time and zone; needed' },
    reason: { type: 'string', placeholder: 'TEXT', text: 'for set: shown in lists', default: 'none' },
    max: {
      type: 'string',
      placeholder: 'NUMBER',
      text: 'for list: most that are listed',
      default: String(DEFAULT_MAX),
    },
    cursor: { type: 'string', placeholder: 'CURSOR', text: 'for list: goes on after a page', default: 'the first' },
    yes: { type: 'boolean', short: 'y', text: 'do not ask' },
    ...BY_OPTION,
    ...DOCUMENT_OPTIONS,
  },
  examples: [
    'sluice override set user=42 --policy api --limit 1000 --until 2030-01-31 --reason trial',
    `sluice override set ip=192.0.2.7 --policy search --limits '[{ "name": "burst", "capacity": 50 }]' --until 2030-01-31T12:00:00Z`,
    'sluice override list --policy api',
    'sluice override remove user=42 --policy api',
  ],
  notes: `Entries of changes are in Redis: with --to postgres, REDIS_URL names it.
Processes take an override within a second.\n${EXIT_CODES}`,

  async run(values, environment, [action, client]) {
    const call = { set, list, remove }[String(action)]
    if (!call) throw new UsageError(`expected set, list or remove, got ${quoted(String(action))}`)
    try {
      return await call(values, environment, client)
    } catch (error) {
      if (error instanceof PoliciesError) throw new UsageError(error.message)
      if (!(error instanceof OverrideConflict)) throw error
      environment.stderr.write(`sluice: ${error.message}\n`)
      if (error.found) environment.stderr.write(overridesTable([error.found]))
      return REFUSED
    }
  },
}

type Call = (values: OptionValues, environment: CommandEnvironment, client: string | undefined) => Promise<number>

const set: Call = async (values, environment, client) => {
  const key = keyOf('set', client)
  const [kind] = Object.keys(key)
  const given: OverrideToSet = {
    policy: policyOf(values),
    key,
    limits: limitsOf(values),
    until: untilOf(values),
    ...(values.reason !== undefined && { reason: String(values.reason) }),
  }
  const { stdout, stderr } = environment
  return withPolicies(values, environment, kind, async ({ overrides }) => {
    const plan = await usable(() => overrides.plan(given))
    if (!values.json) stdout.write(planText(plan))
    if (!values.yes && !(await agreed(environment, 'Put it in force?', 'puts it in force'))) {
      stderr.write('sluice: nothing was changed\n')
      return REFUSED
    }
    const by = authorOf(values, environment)
    const saved = await withChanges(values, environment, (changes) =>
      overrides.set({ ...given, expected: plan.version }, { by, changes }),
    )
    stdout.write(values.json ? `${JSON.stringify(saved, null, 2)}\n` : 'it is in force\n')
    return DONE
  })
}

const list: Call = async (values, environment, client) => {
  if (client !== undefined) throw new UsageError(`unexpected argument ${quoted(client)}`)
  const max = wholeNumberOption(values, 'max', { min: 1, max: 1000, otherwise: DEFAULT_MAX })
  const { policy, cursor } = values
  const query = { max, ...(policy && { policy: String(policy) }), ...(cursor && { cursor: String(cursor) }) }
  const { stdout, stderr } = environment
  return withPolicies(values, environment, undefined, async ({ overrides }) => {
    const page = await usable(() => overrides.list(query))
    if (values.json) stdout.write(`${JSON.stringify(page, null, 2)}\n`)
    else
      stdout.write(
        page.entries.length === 0 ? 'there is no override beside the document\n' : overridesTable(page.entries),
      )
    if (page.cursor && !values.json) stderr.write(`sluice: there are more: --cursor ${page.cursor} lists the next\n`)
    return DONE
  })
}

const remove: Call = async (values, environment, client) => {
  const key = keyOf('remove', client)
  const policy = policyOf(values)
  const { stdout, stderr } = environment
  return withPolicies(values, environment, Object.keys(key)[0], async ({ overrides }) => {
    const found = await usable(() => overrides.get({ policy, key }))
    if (!found) {
      stderr.write(`sluice: ${client} has no override of ${policy} beside the document\n`)
      return REFUSED
    }
    if (!values.json) stdout.write(overridesTable([found]))
    if (!values.yes && !(await agreed(environment, 'End it?', 'ends it'))) {
      stderr.write('sluice: nothing was changed\n')
      return REFUSED
    }
    const by = authorOf(values, environment)
    await withChanges(values, environment, (changes) =>
      overrides.remove({ policy, key, expected: found.version }, { by, changes }),
    )
    stdout.write(values.json ? `${JSON.stringify(found, null, 2)}\n` : 'it is ended\n')
    return DONE
  })
}

/** `user=42`, or a secret as `header:x-api-key=sha256:…`, which is no secret. @throws UsageError */
function keyOf(action: string, text: string | undefined): Readonly<Record<string, string>> {
  const equals = text?.indexOf('=') ?? -1
  const [kind, value] = [text?.slice(0, equals) ?? '', text?.slice(equals + 1) ?? '']
  if (equals < 1 || value === '' || !isKind(kind)) {
    throw new UsageError(`override ${action}: expected KIND=VALUE, such as user=42, got ${quoted(text ?? '')}`)
  }
  if (isSecretKind(kind) && countedHash(value) === undefined) {
    throw new UsageError(`${kind}: arguments show in process lists: expected sha256: and 64 hexadecimal digits`)
  }
  return { [kind]: value }
}

function policyOf({ policy }: OptionValues): string {
  if (typeof policy !== 'string') throw new UsageError('--policy: expected the name of a policy of the document')
  return policy
}

function limitsOf({ limit, limits }: OptionValues): readonly object[] {
  if ((limit === undefined) === (limits === undefined)) throw new UsageError('expected one of --limit and --limits')
  if (limit !== undefined) {
    if (!/^\d{1,15}$/.test(String(limit))) throw new UsageError('--limit: expected a whole number')
    return [{ limit: Number(limit) }]
  }
  try {
    const changes: unknown = JSON.parse(String(limits))
    if (Array.isArray(changes)) return changes as object[]
  } catch {
    // As below.
  }
  throw new UsageError(`--limits: expected a JSON array such as '[{ "limit": 1000 }]'`)
}

/** A day begins in UTC. */
function untilOf({ until }: OptionValues): string {
  if (typeof until !== 'string') throw new UsageError('--until: expected a time such as 2030-01-31')
  return /^\d{4}-\d{2}-\d{2}$/.test(until) ? `${until}T00:00:00Z` : until
}
