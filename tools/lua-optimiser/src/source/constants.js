// Numbers that Lua and the store exchange: defined in the Lua, and passed to the store by the build.

/** Numbers by the names of the locals that hold them. @typedef {Readonly<Record<string, number>>} Constants */

/**
 * The numbers of a declaration below the line `--- @export outcomes`, by the name after `@export`.
 *
 * @param {string} name of the file, relative to lua/, without `.lua`
 * @param {string} source
 * @returns {Record<string, Constants>}
 */
export function constantsOf(name, source) {
  const lines = source.split(/\r?\n/)
  /** @type {Record<string, Constants>} */
  const groups = {}
  for (const [i, line] of lines.entries()) {
    if (!/^\s*--+\s*@export\b/.test(line)) continue
    const where = `lua/${name}.lua:${i + 1}`
    const group = /^--- @export ([a-z]+)\s*$/.exec(line)?.[1]
    if (group === undefined) throw new Error(`${where}: expected --- @export name, got ${line.trim()}`)
    groups[group] = constantsIn(lines[i + 1] ?? '', where)
  }
  return groups
}

/** @param {string} line @param {string} where @returns {Constants} */
function constantsIn(line, where) {
  const [, names, values] = /^local ([A-Z_]+(?:, [A-Z_]+)*) = (\d+(?:, \d+)*)$/.exec(line) ?? []
  const numbers = values?.split(', ').map(Number) ?? []
  const entries = names?.split(', ').map((each, i) => [each, numbers[i]]) ?? []
  if (entries.length === 0 || entries.length !== numbers.length) {
    throw new Error(`${where}: expected local NAME, OTHER = 1, 2 in the next line, got ${line.trim()}`)
  }
  return Object.fromEntries(entries)
}
