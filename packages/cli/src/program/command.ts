import type { Environment } from './environment.js'
import type { Terminal } from './terminal.js'

export interface OptionSpec {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** Whether it may be given several times: its values are joined by line breaks then. @default false */
  readonly repeats?: boolean
  /** Stands for the value in the help: `URL`. */
  readonly placeholder?: string
  /** One line of help, without the default. */
  readonly text: string
  /** As the help shows it; the command applies it. */
  readonly default?: string
}

/** Arguments that are no options. */
export interface OperandSpec {
  /** Stands for them in the help: `FILE…`. */
  readonly placeholder: string
  readonly min: number
  readonly max: number
}

/** Options as they were given: text for those with a value, true for the others. */
export type OptionValues = Readonly<Record<string, string | true | undefined>>

/** The environment as commands get it. */
export interface CommandEnvironment extends Environment {
  readonly stdout: Terminal
  readonly stderr: Terminal
}

/** One command of the program: a folder in `commands/`, listed in `commands/index.ts`. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The text above the options in its help. */
  readonly description: string
  readonly options: Readonly<Record<string, OptionSpec>>
  /** @default none */
  readonly operands?: OperandSpec
  readonly examples: readonly string[]
  /** The text below the examples in its help. */
  readonly notes?: string
  /** Resolves to the exit code. Throws `UsageError` for options that make no sense. */
  run(values: OptionValues, environment: CommandEnvironment, operands: readonly string[]): Promise<number>
}
