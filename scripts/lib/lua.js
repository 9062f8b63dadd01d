// Turns Lua source files into the one compact text that Redis gets. Pure: files come in through a function.
// Knows as much of Lua's grammar as it takes to tell comments, strings and code apart.

/**
 * @callback ReadSource
 * @param {string} name a file relative to lua/, without `.lua`, such as `kernels/bucket`
 * @returns {string | undefined} its text, undefined when there is no such file
 */

/**
 * The script `name` with its includes in place, and without comments, blank lines and indentation.
 * An include is a line `--- @include "kernels/bucket"`. A file is taken in once, where it is first named.
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
 * `--- @when bucket` and `--- @end` around a part that only some runs need. Kept, as comments: the store
 * leaves out the parts that a batch does not use, since Redis makes every function anew on every run.
 *
 * @param {string} line
 * @param {string} where
 * @returns {string | undefined}
 */
function sectionMark(line, where) {
  if (!/^\s*--+\s*@(when|end)\b/.test(line)) return undefined
  const mark = /^--- @(when [a-z]+|end)\s*$/.exec(line)?.[1]
  if (mark === undefined) throw new Error(`${where}: expected --- @when name or --- @end, got ${line.trim()}`)
  return `--@${mark}`
}

/**
 * @param {string} line
 * @param {string} where
 * @returns {string | undefined} what an include line names
 */
function includeTarget(line, where) {
  if (!/^\s*--+\s*@include\b/.test(line)) return undefined
  const target = /^\s*--- @include "([\w-]+(?:\/[\w-]+)*)"\s*$/.exec(line)?.[1]
  // A mistyped include is still a comment to Lua: without this it would vanish without a word.
  if (target === undefined) throw new Error(`${where}: expected --- @include "folder/name", got ${line.trim()}`)
  return target
}

/**
 * One line's code, without its comment and the white space around it.
 *
 * @param {string} line
 * @param {string} where for error messages, such as `lua/decide.lua:12`
 * @returns {string}
 */
export function stripLine(line, where) {
  let position = 0
  while (position < line.length) {
    const character = line[position]
    if (character === '"' || character === "'") {
      position = endOfString(line, position, where)
    } else if (line.startsWith('--', position)) {
      refuseLongBracket(line, position + 2, where)
      return line.slice(0, position).trim()
    } else {
      refuseLongBracket(line, position, where)
      position += 1
    }
  }
  return line.trim()
}

/**
 * @param {string} line
 * @param {number} start where the opening quote is
 * @param {string} where
 * @returns {number} the position after the closing quote
 */
function endOfString(line, start, where) {
  const quote = line[start]
  for (let position = start + 1; position < line.length; position += 1) {
    if (line[position] === '\\') position += 1
    else if (line[position] === quote) return position + 1
  }
  throw new Error(`${where}: a string must end on the line it starts on`)
}

/**
 * Long strings and long comments go on over line ends, so lines could no longer be looked at one by one.
 *
 * @param {string} line
 * @param {number} position
 * @param {string} where
 */
function refuseLongBracket(line, position, where) {
  if (/^\[=*\[/.test(line.slice(position))) throw new Error(`${where}: long brackets [[ ]] are not supported here`)
}

/**
 * What makes a kernel impure: it may compute, and nothing else.
 *
 * @param {string} name such as `kernels/bucket`
 * @param {string} source
 * @returns {string[]} one sentence per offending line
 */
export function impurities(name, source) {
  return source.split(/\r?\n/).flatMap((line, index) => {
    const where = `lua/${name}.lua:${index + 1}`
    const code = stripLine(line, where).replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '""')
    return /\bredis\b/.test(code) ? [`${where}: a kernel is pure and may not use redis`] : []
  })
}

/**
 * A script with some of its parts or without; parts that are not spoken of stay, with their marks.
 *
 * @param {string} source
 * @param {Readonly<Record<string, boolean>>} choice by what stands after `@when`
 * @returns {string}
 */
export function withParts(source, choice) {
  /** Of the parts around the line at hand, whether each is wanted. @type {(boolean | undefined)[]} */
  const around = []
  const lines = source.split('\n').filter((line) => {
    const [, part] = /^--@when (\w+)$/.exec(line) ?? []
    if (part !== undefined) around.push(choice[part])
    const isMark = part !== undefined || line === '--@end'
    const isKept = !around.includes(false) && !(isMark && around.at(-1) !== undefined)
    if (line === '--@end') around.pop()
    return isKept
  })
  return lines.join('\n')
}
