// `npm run docs:check` and the deep run open the documentation in a Chromium, which is installed where it is missing.
import { existsSync } from 'node:fs'
import { whenStarted } from './lib/run.js'
import { ensure, findProgram } from './lib/system-program.js'

/** @type {import('./lib/system-program.js').Wanted} */
const chromium = {
  program: 'chromium',
  what: 'Chromium',
  packages: { 'apt-get': 'chromium', apk: 'chromium', dnf: 'chromium', brew: 'chromium' },
}

/** The Chromium that `CHROMIUM` names, else one on PATH; undefined without any. */
export function chromiumPath({ CHROMIUM: named, PATH: path } = process.env) {
  if (named) {
    if (!existsSync(named)) throw new Error(`CHROMIUM: expected the path of a Chromium, got ${named}`)
    return named
  }
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = findProgram(name, path)
    if (found !== undefined) return found
  }
  return undefined
}

export async function ensureChromium() {
  if (chromiumPath() === undefined) await ensure([chromium])
}

await whenStarted(import.meta.url, ensureChromium)
