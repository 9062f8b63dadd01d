import { hintAfter, ownFieldsOf, quoted } from '@sluice/core/internal'
import { COMMANDS } from './commands/index.js'
import type { Command, CommandEnvironment, OptionSpec } from './program/command.js'
import type { Environment } from './program/environment.js'
import { DONE, FAILED } from './program/exit-codes.js'
import { commandHelp, programHelp } from './program/help.js'
import { readOptions } from './program/options.js'
import { Terminal } from './program/terminal.js'
import { UsageError } from './program/usage-error.js'

const HELP: Readonly<Record<string, OptionSpec>> = {
  help: { type: 'boolean', short: 'h', text: 'show this help' },
}
const GLOBAL: Readonly<Record<string, OptionSpec>> = {
  ...HELP,
  version: { type: 'boolean', text: 'show the version' },
}

/**
 * Runs one command line, without the program's name, and resolves to its exit code. Never rejects: an error is one sentence on
 * `stderr`.
 */
export async function run(args: readonly string[], given: Environment): Promise<number> {
  // Not `Object.prototype`: a polluted one would set variables and options.
  const env = ownFieldsOf(given.env)
  const environment = { ...given, env, stdout: new Terminal(given.stdout), stderr: new Terminal(given.stderr) }
  const [first] = args
  const command = COMMANDS.find(({ name }) => name === first)
  try {
    return command ? await runCommand(command, args.slice(1), environment) : withoutCommand(args, environment)
  } catch (error) {
    const help = `sluice ${command ? `${command.name} ` : ''}--help shows what there is.`
    const hint = error instanceof UsageError ? `\n${help}` : ''
    environment.stderr.write(`sluice: ${error instanceof Error ? error.message : String(error)}${hint}\n`)
    return FAILED
  }
}

async function runCommand(command: Command, args: readonly string[], environment: CommandEnvironment): Promise<number> {
  const { values: given, operands } = readOptions(args, { ...command.options, ...HELP }, ownFieldsOf(command).operands)
  const { help, ...values } = given
  if (!help) return command.run(ownFieldsOf(values), environment, operands)
  environment.stdout.write(commandHelp(command, HELP))
  return DONE
}

function withoutCommand(args: readonly string[], { stdout, stderr, version }: CommandEnvironment): number {
  const [first = ''] = args
  if (first !== '' && !first.startsWith('-')) {
    const names = COMMANDS.map(({ name }) => name)
    throw new UsageError(`unknown command ${quoted(first)}${hintAfter(first, names)}`)
  }
  const { values } = readOptions(args, GLOBAL)
  if (values.version) {
    stdout.write(`${version}\n`)
    return DONE
  }
  // A script that forgot the command must not continue as if it had succeeded.
  const isAsked = values.help !== undefined
  ;(isAsked ? stdout : stderr).write(programHelp(COMMANDS, GLOBAL))
  return isAsked ? DONE : FAILED
}
