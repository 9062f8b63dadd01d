import { createRequire } from 'node:module'

/** The files of the page as text, by name. */
export type PageFiles = Readonly<Record<'index.html' | 'app.js' | 'app.css' | 'icon.svg', string>>

/** Those of the last build. The build replaces this module, as its own files lie elsewhere: scripts/lib/console-page.js. */
export function readFiles(): PageFiles {
  return createRequire(import.meta.url)('../../dist/page.cjs')
}
