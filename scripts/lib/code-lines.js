// How many lines of code a folder has: without comments, blank lines and generated files.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** @param {string} text */
export function codeLinesIn(text) {
  // Formatted code begins each comment on a line of its own, or ends a line with it.
  const code = text.replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '')
  return code.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length
}

/**
 * The code lines of each folder of a folder, and of the files beside them as `''`.
 *
 * @param {string} folder
 * @returns {Record<string, number>}
 */
export function codeLinesOf(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.includes('.generated.'),
  )
  /** @type {Record<string, number>} */
  const lines = {}
  for (const file of files) {
    const room = file.includes('/') ? file.slice(0, file.indexOf('/')) : ''
    lines[room] = (lines[room] ?? 0) + codeLinesIn(readFileSync(join(folder, file), 'utf8'))
  }
  return lines
}
