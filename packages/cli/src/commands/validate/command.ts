import { readFileSync } from 'node:fs'
import { type LocatedProblem, lineOf, problemsIn } from '@sluice/policies'
import type { Command } from '../../program/command.js'

/** Exit codes: all documents are right, or one is wrong. */
const RIGHT = 0
const WRONG = 1

export const validate: Command = {
  name: 'validate',
  summary: 'check policies in files, YAML or JSON',
  description: `Checks documents of policies, and lists everything that is wrong with them, with line and column. It asks no Redis.
Names of keys, tiers and costs that code registers are taken as they are.`,
  operands: { placeholder: 'FILE…', least: 1, most: 1000 },
  options: { json: { type: 'boolean', text: 'print the problems as JSON' } },
  examples: ['sluice validate policies.yaml', 'sluice validate --json config/*.yaml'],
  notes: 'Exit code: 0 all are right, 1 some are wrong or cannot be read, 2 wrong usage.',

  async run(values, { stdout }, files) {
    const checked = files.map((file) => ({ file, problems: problemsOf(file) }))
    const isRight = checked.every(({ problems }) => problems.length === 0)
    if (values.json) stdout.write(`${JSON.stringify({ right: isRight, files: checked }, null, 2)}\n`)
    else for (const { file, problems } of checked) stdout.write(textOf(file, problems))
    return isRight ? RIGHT : WRONG
  },
}

function problemsOf(file: string): readonly LocatedProblem[] {
  let bytes: Uint8Array
  try {
    bytes = readFileSync(file)
  } catch (error) {
    return [fault(file, `expected a file that can be read (${(error as NodeJS.ErrnoException).code})`)]
  }
  try {
    return problemsIn(new TextDecoder('utf-8', { fatal: true }).decode(bytes), file, 'any')
  } catch (error) {
    if (error instanceof TypeError) return [fault(file, 'expected text in UTF-8')]
    throw error
  }
}

function fault(source: string, message: string): LocatedProblem {
  return { source, line: undefined, column: undefined, path: '', message }
}

function textOf(file: string, problems: readonly LocatedProblem[]): string {
  if (problems.length === 0) return `${file}: right\n`
  return problems.map((problem) => `${lineOf(problem)}\n`).join('')
}
