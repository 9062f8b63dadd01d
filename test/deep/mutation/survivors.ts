import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Mutants that no check can notice, by reason. */
export const survivors: readonly { readonly reason: string; readonly mutants: readonly string[] }[] = JSON.parse(
  readFileSync(join(import.meta.dirname, 'survivors.json'), 'utf8'),
)
