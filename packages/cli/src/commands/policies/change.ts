import { differencesOf, type SavedDocuments, VersionConflict } from '@sluice/policies'
import { agreed } from '../../program/agreed.js'
import { authorOf } from '../../program/author.js'
import type { OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { DONE, REFUSED } from '../../program/exit-codes.js'
import { withStore } from '../../redis/store.js'
import { carriedLines, carriedOf } from './carried.js'

/** Saves a text as the next version, once a person has confirmed the differences, or with --yes. */
export async function change(
  action: 'apply' | 'rollback',
  documents: SavedDocuments,
  text: string,
  values: OptionValues,
  environment: Environment,
): Promise<number> {
  const { stdout, stderr } = environment
  const newest = await documents.newest()
  const version = newest?.version ?? 0
  const differences = differencesOf(newest?.text, text)
  if (newest?.text === text) {
    print(
      values,
      environment,
      { version, differences: [], carried: [] },
      `nothing is different from version ${version}\n`,
    )
    return DONE
  }
  const carried = carriedOf(newest?.text, text)
  const lines = [...differences, ...carriedLines(carried)]
  if (!values.json) stdout.write(`${lines.join('\n') || 'nothing but its spelling is different'}\n`)
  const question = newest ? `Replace version ${version}?` : 'Put it in force as version 1?'
  if (!values.yes && !(await agreed(environment, question, 'puts it in force'))) {
    stderr.write('sluice: nothing was changed\n')
    return REFUSED
  }
  try {
    const next = await saved(action, documents, text, version, values, environment)
    print(values, environment, { version: next, differences, carried }, `version ${next} is in force\n`)
    return DONE
  } catch (error) {
    if (!(error instanceof VersionConflict)) throw error
    const now = await documents.newest()
    const theirs = differencesOf(newest?.text, now?.text ?? '')
    stderr.write(`sluice: ${error.message}\n${now?.by || 'another user'} has saved:\n${theirs.join('\n')}\n`)
    return REFUSED
  }
}

function print(values: OptionValues, { stdout }: Environment, data: object, text: string): void {
  stdout.write(values.json ? `${JSON.stringify(data, null, 2)}\n` : text)
}

/** Saves the next version with an entry of the change, which is in Redis, wherever the document is. */
function saved(
  action: string,
  documents: SavedDocuments,
  text: string,
  version: number,
  values: OptionValues,
  environment: Environment,
): Promise<number> {
  const by = authorOf(values, environment)
  const save = () => documents.save(text, version, by)
  // Without a Redis, the history in PostgreSQL is the only record.
  if (values.to === 'postgres' && !environment.env.REDIS_URL) return save()
  const { name: document = 'default' } = values
  const change = { by, action, before: { document, version }, after: { document, version: version + 1 } }
  return withStore(values, environment, ({ changes }) => changes.record(change, save))
}
