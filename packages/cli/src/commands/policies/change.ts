import { type SavedDocuments, VersionConflict } from '@sluice/policies'
import { agreed } from '../../program/agreed.js'
import type { OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { DONE, REFUSED } from '../../program/exit-codes.js'
import { carriedLines, carriedOf } from './carried.js'
import { differencesOf } from './differences.js'

/** Saves a text as the next version, once a person has confirmed the differences, or with --yes. */
export async function change(
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
    const saved = await documents.save(text, version, authorOf(values, environment))
    print(values, environment, { version: saved, differences, carried }, `version ${saved} is in force\n`)
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

/** The person, for the history. */
function authorOf({ by }: OptionValues, { env }: Environment): string {
  return String(by ?? env.SLUICE_BY ?? env.USER ?? '').slice(0, 100)
}
