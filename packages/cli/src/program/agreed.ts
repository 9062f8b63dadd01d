import type { Environment } from './environment.js'
import { UsageError } from './usage-error.js'

/**
 * Whether a person agrees to a change.
 *
 * @param effect what `--yes` does
 * @throws UsageError without a terminal
 */
export async function agreed({ confirm }: Environment, question: string, effect: string): Promise<boolean> {
  if (!confirm) throw new UsageError(`there is no terminal to ask on: --yes ${effect}`)
  return confirm(question)
}
