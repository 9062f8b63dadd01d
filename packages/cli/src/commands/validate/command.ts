import { readFileSync } from 'node:fs'
import { findingsIn, type LocatedProblem, lineOf } from '@sluice/policies'
import { asWarning } from '../../documents/checked.js'
import type { Command } from '../../program/command.js'

/** Exit codes: all documents are right, or one is wrong. */
const RIGHT = 0
const WRONG = 1

export const validate: Command = {
  name: 'validate',
  summary: 'check policies in files, YAML or JSON',
  description: `Checks documents of policies, and lists everything that is wrong with them, with line and column, and warns of
what may not do what it seems to. It asks no Redis.
Names of keys, tiers and costs that code registers are taken as they are.`,
  operands: { placeholder: 'FILE…', min: 1, max: 1000 },
  options: { json: { type: 'boolean', text: 'print the problems and warnings as JSON' } },
  examples: ['sluice validate policies.yaml', 'sluice validate --json config/*.yaml'],
  notes: 'Exit code: 0 all are right, with warnings or without, 1 some are wrong or cannot be read, 2 wrong usage.',

  async run(values, { stdout }, files) {
    const checked = files.map((file) => ({ file, ...foundIn(file) }))
    const isRight = checked.every(({ problems }) => problems.length === 0)
    if (values.json) stdout.write(`${JSON.stringify({ right: isRight, files: checked }, null, 2)}\n`)
    else for (const each of checked) stdout.write(textOf(each))
    return isRight ? RIGHT : WRONG
  },
}

/** The findings in a file. */
interface Found {
  readonly problems: readonly LocatedProblem[]
  readonly warnings: readonly LocatedProblem[]
}

function foundIn(file: string): Found {
  let bytes: Uint8Array
  try {
    bytes = readFileSync(file)
  } catch (error) {
    return fault(file, `expected a file that can be read (${(error as NodeJS.ErrnoException).code})`)
  }
  try {
    const { problems, advice } = findingsIn(new TextDecoder('utf-8', { fatal: true }).decode(bytes), file, 'any')
    return { problems, warnings: advice }
  } catch (error) {
    if (error instanceof TypeError) return fault(file, 'expected text in UTF-8')
    throw error
  }
}

function fault(source: string, message: string): Found {
  return { problems: [{ source, line: undefined, column: undefined, path: '', message }], warnings: [] }
}

function textOf({ file, problems, warnings }: Found & { readonly file: string }): string {
  const lines = [...problems, ...warnings.map(asWarning)].map(lineOf)
  if (problems.length === 0) lines.push(`${file}: right`)
  return lines.map((line) => `${line}\n`).join('')
}
