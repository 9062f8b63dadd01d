// Puts the files of lua/ together into one text. Pure: files come in through a function.
import { sectionMark } from './sections.js'
import { stripLine } from './strip-line.js'

/**
 * @callback ReadSource
 * @param {string} name a file relative to lua/, without `.lua`, such as `kernels/bucket`
 * @returns {string | undefined} its text, undefined when there is no such file
 */

/**
 * The script `name` with its includes in place, and without comments, blank lines and indentation.
 * An include is a line `--- @include "kernels/bucket"`. A file is included once, where it is first named.
 *
 * @param {string} name
 * @param {ReadSource} read
 * @returns {string} ends with a line break
 */
export function bundle(name, read) {
  /** @type {Set<string>} */
  const included = new Set()
  /** @type {string[]} */
  const lines = []
  appendFile(name, { read, included, lines, path: [], from: name })
  return `${lines.join('\n')}\n`
}

/**
 * @param {string} name
 * @param {{ read: ReadSource, included: Set<string>, lines: string[], path: string[], from: string }} work
 */
function appendFile(name, { read, included, lines, path, from }) {
  if (path.includes(name)) throw new Error(`lua: include cycle: ${[...path, name].join(' -> ')}`)
  if (included.has(name)) return
  included.add(name)

  const source = read(name)
  if (source === undefined) throw new Error(`${from}: there is no lua/${name}.lua`)
  source.split(/\r?\n/).forEach((line, index) => {
    const where = `lua/${name}.lua:${index + 1}`
    const target = includeTarget(line, where)
    if (target !== undefined) {
      appendFile(target, { read, included, lines, path: [...path, name], from: where })
      return
    }
    const code = sectionMark(line, where) ?? stripLine(line, where)
    if (code !== '') lines.push(code)
  })
}

/**
 * @param {string} line
 * @param {string} where
 * @returns {string | undefined} what an include line names
 */
function includeTarget(line, where) {
  if (!/^\s*--+\s*@include\b/.test(line)) return undefined
  const target = /^\s*--- @include "([\w-]+(?:\/[\w-]+)*)"\s*$/.exec(line)?.[1]
  // A mistyped include is still a comment in Lua: without this it would be ignored without an error.
  if (target === undefined) throw new Error(`${where}: expected --- @include "folder/name", got ${line.trim()}`)
  return target
}
