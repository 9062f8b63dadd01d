import type { OptionSpec, OptionValues } from './command.js'
import type { Environment } from './environment.js'

/** The option of commands that change something. */
export const BY_OPTION: Readonly<Record<string, OptionSpec>> = {
  by: { type: 'string', placeholder: 'NAME', text: 'your name, for the history', default: 'SLUICE_BY, else USER' },
}

/** The person, for the history. */
export function authorOf({ by }: OptionValues, { env }: Environment): string {
  return String(by ?? env.SLUICE_BY ?? env.USER ?? '').slice(0, 100)
}
