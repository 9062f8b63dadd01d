import { inLine } from '@sluice/core/internal'
import { differencesOf } from '@sluice/policies'
import { checkedDocument } from '../../documents/checked.js'
import { BY_OPTION } from '../../program/author.js'
import type { Command, OptionSpec } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { carriedLines, carriedOf } from './carried.js'
import { change } from './change.js'
import { DOCUMENT_OPTIONS, withDocuments } from './documents.js'

const CHANGE_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  ...DOCUMENT_OPTIONS,
  yes: { type: 'boolean', short: 'y', text: 'do not ask' },
  ...BY_OPTION,
}

export const plan: Command = {
  name: 'plan',
  summary: 'show what a file of policies would change in Redis or PostgreSQL',
  description: `Checks a file of policies, and shows what is different from the version in force, and of each limit that changes
whether what clients have used of it still counts. Changes nothing.`,
  operands: { placeholder: 'FILE', min: 1, max: 1 },
  options: DOCUMENT_OPTIONS,
  examples: ['REDIS_URL=redis://host:6379 sluice plan policies.yaml'],
  notes: EXIT_CODES,

  async run(values, environment, [file]) {
    const text = checkedDocument(file as string, environment)
    if (text === undefined) return REFUSED
    return withDocuments(values, environment, async (documents) => {
      const newest = await documents.newest()
      const differences = differencesOf(newest?.text, text)
      const carried = carriedOf(newest?.text, text)
      const version = newest?.version ?? 0
      const lines = [...differences, ...carriedLines(carried)]
      environment.stdout.write(
        values.json
          ? `${JSON.stringify({ version, differences, carried }, null, 2)}\n`
          : `${lines.join('\n') || `nothing is different from version ${version}`}\n`,
      )
      return DONE
    })
  },
}

export const apply: Command = {
  name: 'apply',
  summary: 'put a file of policies in force, in every process that reads them from Redis or PostgreSQL',
  description: `Checks a file of policies, shows what is different from the version in force, asks, and replaces that. Where another
version is in force meanwhile, nothing is changed. Processes take it within a second.`,
  operands: { placeholder: 'FILE', min: 1, max: 1 },
  options: CHANGE_OPTIONS,
  examples: [
    'REDIS_URL=redis://host:6379 sluice apply policies.yaml',
    'sluice apply policies.yaml --yes --by release-42',
    'DATABASE_URL=postgres://user@host/database sluice apply --to postgres policies.yaml',
  ],
  notes: EXIT_CODES,

  async run(values, environment, [file]) {
    const text = checkedDocument(file as string, environment)
    if (text === undefined) return REFUSED
    return withDocuments(values, environment, (documents) => change('apply', documents, text, values, environment))
  },
}

export const history: Command = {
  name: 'history',
  summary: 'list the versions of policies in Redis or PostgreSQL, with their authors and times',
  description: 'Lists the last twenty versions, newest first. The first is in force.',
  options: DOCUMENT_OPTIONS,
  examples: ['sluice history', 'sluice history --json'],
  notes: EXIT_CODES,

  async run(values, environment) {
    const all = await withDocuments(values, environment, (documents) => documents.history())
    const rows = all.map(({ version, at, by }, i) => ({
      version,
      at: new Date(at).toISOString(),
      by,
      changes: differencesOf(all[i + 1]?.text, all[i]?.text ?? ''),
    }))
    if (values.json) environment.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
    else if (rows.length === 0) environment.stdout.write('no version was saved so far\n')
    for (const { version, at, by, changes } of values.json ? [] : rows) {
      const lines = [
        `${String(version).padStart(6)}  ${at}  ${inLine(by)}`,
        ...changes.map((line) => `        ${line}`),
      ]
      environment.stdout.write(`${lines.map((line) => line.trimEnd()).join('\n')}\n`)
    }
    return DONE
  },
}

export const rollback: Command = {
  name: 'rollback',
  summary: 'put an earlier version of the policies in Redis or PostgreSQL in force again',
  description:
    'Saves an earlier version as the newest: the last but one, or the given number. Shows the differences, and asks first.',
  operands: { placeholder: '[VERSION]', min: 0, max: 1 },
  options: CHANGE_OPTIONS,
  examples: ['sluice rollback', 'sluice rollback 41 --yes'],
  notes: EXIT_CODES,

  async run(values, environment, [version]) {
    return withDocuments(values, environment, async (documents) => {
      const all = await documents.history()
      const found = version === undefined ? all[1] : all.find((each) => String(each.version) === version)
      if (!found) {
        const known = all.map((each) => each.version).join(', ')
        const kept = all.length > 0 ? `version ${known} is the only one` : 'nothing was applied so far'
        const why =
          version === undefined
            ? `there is no version to go back to: ${kept}`
            : `expected a stored version (${known || 'there is none'}), got ${version}`
        environment.stderr.write(`sluice: ${why}\n`)
        return REFUSED
      }
      return change('rollback', documents, found.text, values, environment)
    })
  },
}
