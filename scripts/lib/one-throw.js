import ts from 'typescript5'

const NAME = 'raiseError'
const RAISE = `
// The only line that throws: Node prints it above the message of an uncaught error.
function ${NAME}(error) {
  throw error
}
`

/**
 * A program that throws on one short line. Lines of a minified program have hundreds of characters, and Node would print one of
 * them above each message.
 *
 * @param {string} program
 */
export function withOneThrow(program) {
  if (program.includes(NAME)) throw new Error(`the program has a ${NAME} of its own`)
  const source = ts.createSourceFile('program.cjs', program, ts.ScriptTarget.Latest)
  let end = 0
  let text = ''
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (!ts.isThrowStatement(node)) {
      ts.forEachChild(node, visit)
      return
    }
    const { expression } = node
    text += `${program.slice(end, node.getStart(source))}${NAME}((`
    end = expression.getStart(source)
    visit(expression)
    // `throw a, b` throws b: the second pair of parentheses keeps it one argument.
    text += `${program.slice(end, expression.end)}))`
    end = expression.end
  }
  visit(source)
  return end === 0 ? program : text + program.slice(end) + RAISE
}
