// Lines of Lua without comments. Knows enough of the grammar to distinguish comments, strings and code.

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
 * Long strings and long comments continue over line ends, so lines could not be read one by one.
 *
 * @param {string} line
 * @param {number} position
 * @param {string} where
 */
function refuseLongBracket(line, position, where) {
  if (/^\[=*\[/.test(line.slice(position))) throw new Error(`${where}: long brackets [[ ]] are not supported here`)
}
