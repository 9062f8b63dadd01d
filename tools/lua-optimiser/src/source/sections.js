// Sections of a script: the lines between `--- @when bucket` and `--- @end`, which only some batches need.

/** Sections that the store also adds to scripts for one kind of cell. */
export const ADDED_SECTIONS = ['bans', 'turns']

/**
 * The mark of a line of the source, as it is in the script. Marks stay, as comments, until the script is cut into pieces: the
 * store leaves out those that a batch does not need.
 *
 * @param {string} line
 * @param {string} where
 * @returns {string | undefined} undefined for any other line
 */
export function sectionMark(line, where) {
  if (!/^\s*--+\s*@(when|end)\b/.test(line)) return undefined
  const mark = /^--- @(when [a-z]+|end)\s*$/.exec(line)?.[1]
  if (mark === undefined) throw new Error(`${where}: expected --- @when name or --- @end, got ${line.trim()}`)
  return `--@${mark}`
}

/**
 * A script with some of its sections and without others. Sections that `choice` does not name stay, with their marks.
 *
 * @param {string} source
 * @param {Readonly<Record<string, boolean>>} choice by the name after `@when`
 * @returns {string}
 */
export function withSections(source, choice) {
  /** Whether each section around the current line is wanted. @type {(boolean | undefined)[]} */
  const around = []
  const lines = source.split('\n').filter((line) => {
    const [, section] = /^--@when (\w+)$/.exec(line) ?? []
    if (section !== undefined) around.push(choice[section])
    const isMark = section !== undefined || line === '--@end'
    const isKept = !around.includes(false) && !(isMark && around.at(-1) !== undefined)
    if (line === '--@end') around.pop()
    return isKept
  })
  return lines.join('\n')
}

/**
 * A script in pieces, each with its sections, from the outside in.
 *
 * @param {string} source
 * @returns {{ sections: readonly string[], source: string }[]} in the order of the script, each of whole lines
 */
export function piecesOf(source) {
  /** @type {{ sections: readonly string[], source: string }[]} */
  const pieces = []
  /** @type {readonly string[]} */
  let sections = []
  /** @type {string[]} */
  let lines = []
  const finish = () => {
    if (lines.length > 0) pieces.push({ sections, source: lines.join('\n') })
    lines = []
  }
  for (const line of source.trimEnd().split('\n')) {
    const [, section] = /^--@when (\w+)$/.exec(line) ?? []
    if (section === undefined && line !== '--@end') {
      lines.push(line)
      continue
    }
    finish()
    sections = section === undefined ? sections.slice(0, -1) : [...sections, section]
  }
  finish()
  return pieces
}
