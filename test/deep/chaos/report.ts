import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../../../.tmp/chaos', import.meta.url))

/** Writes the measurements for the page that `npm run chaos` makes. */
export function note(part: string, name: string, figures: object): void {
  mkdirSync(join(FOLDER, part), { recursive: true })
  writeFileSync(join(FOLDER, part, `${name}.json`), `${JSON.stringify(figures, undefined, 2)}\n`)
}
