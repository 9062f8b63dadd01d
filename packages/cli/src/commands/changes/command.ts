import type { ChangeEntry } from '@sluice/core'
import { instantText, tableOf } from '@sluice/core/internal'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES } from '../../program/exit-codes.js'
import { wholeNumberOption } from '../../program/options.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { usable } from '../../redis/usable.js'

const DEFAULT_MAX = 20
/** Characters of a state in a table. */
const MAX_SHOWN = 60

export const changes: Command = {
  name: 'changes',
  summary: 'list who has changed what: blocks, resets, overrides, versions of policies',
  description: `Lists the changes that people made by commands and in the console, newest first: who, what, and the state before and
after. Redis has the last 10,000. Secrets and long values show as their hashes.`,
  options: {
    max: {
      type: 'string',
      placeholder: 'NUMBER',
      text: 'most that are listed, up to 1000',
      default: String(DEFAULT_MAX),
    },
    cursor: {
      type: 'string',
      placeholder: 'CURSOR',
      text: 'goes on after a page, as that says',
      default: 'the newest',
    },
    ...REDIS_OPTIONS,
  },
  examples: ['REDIS_URL=redis://host:6379 sluice changes', 'sluice changes --max 100 --json'],
  notes: `A change with the state "begun" may have been made or not: its process, or Redis, ended before that was noted.\n${EXIT_CODES}`,

  async run({ cursor, ...values }, environment) {
    const max = wholeNumberOption(values, 'max', { min: 1, max: 1000, otherwise: DEFAULT_MAX })
    const query = { max, ...(cursor !== undefined && { cursor: String(cursor) }) }
    const page = await withStore(values, environment, (store) => usable(() => store.changes.list(query)))
    const { stdout, stderr } = environment
    if (values.json) stdout.write(`${JSON.stringify(page, null, 2)}\n`)
    else stdout.write(page.entries.length === 0 ? 'no change was made so far\n' : tableOfChanges(page.entries))
    if (page.cursor && !values.json) stderr.write(`sluice: there are more: --cursor ${page.cursor} lists the next\n`)
    return DONE
  },
}

function tableOfChanges(entries: readonly ChangeEntry[]): string {
  return tableOf(
    ['number', 'at', 'by', 'change', 'policy', 'identity', 'state', 'before', 'after'],
    entries.map(({ number, at, by, action, policy, kind, value, state, before, after, isErased }) => [
      String(number),
      instantText(at),
      by || '–',
      action,
      policy ?? '–',
      kind === undefined ? (isErased ? '(erased)' : '–') : `${kind}=${value}`,
      state,
      shortened(before),
      shortened(after),
    ]),
  )
}

function shortened(state: unknown): string {
  if (state === undefined) return '–'
  const text = JSON.stringify(state)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
