// Writes a tree as Lua.
import { ADDED_SECTIONS } from '../source/sections.js'

/** @import { Chunk, Declared, Expression, Local, Statement, FunctionDeclaration } from './nodes.js' */

/**
 * The text of a tree, one statement a line.
 *
 * @param {Chunk} chunk
 * @returns {string} ends with a line break
 */
export function printLua(chunk) {
  /** @type {string[]} */
  const lines = []
  new Printer(lines).block(chunk.body, new Set(), '')
  return `${lines.join('\n')}\n`
}

/** Operators by precedence, the lowest first. */
const BINDING = ['or', 'and', '< > <= >= ~= ==', '..', '+ -', '* / %', 'unary', '^']
const STRENGTH = new Map(BINDING.flatMap((operators, i) => operators.split(' ').map((operator) => [operator, i + 1])))

/** @param {string} operator */
function strengthOf(operator) {
  const strength = STRENGTH.get(operator)
  if (strength === undefined) throw new Error(`lua: the operator ${operator} is not supported`)
  return strength
}

class Printer {
  /** The name of each variable: that of the source, unless another variable in scope has it. @type {Map<Local, string>} */
  #names = new Map()
  /** Names in scope at the current statement. @type {Set<string>} */
  #taken = new Set()
  /** The sections around the current statement. @type {string[]} */
  #sections = []
  #lines

  /** @param {string[]} lines */
  constructor(lines) {
    this.#lines = lines
  }

  /** @param {readonly Statement[]} statements @param {ReadonlySet<string>} around names that are taken @param {string} indent */
  block(statements, around, indent) {
    const taken = new Set(around)
    for (const statement of statements) this.#statement(statement, taken, indent)
  }

  /** @param {Statement} node @param {Set<string>} taken @param {string} indent */
  #statement(node, taken, indent) {
    const line = (/** @type {string} */ text) => this.#lines.push(indent + text)
    const inside = (/** @type {readonly Statement[]} */ body, names = taken) => this.block(body, names, `${indent} `)
    this.#taken = taken
    switch (node.type) {
      case 'MarkStatement':
        this.#lines.push(`--@${node.mark}`)
        if (node.mark === 'end') this.#sections.pop()
        else this.#sections.push(node.mark.slice('when '.length))
        return
      case 'LocalStatement': {
        const init = node.init.length > 0 ? ` = ${this.#list(node.init)}` : ''
        line(`local ${this.#declare(node.variables, taken)}${init}`)
        return
      }
      case 'AssignmentStatement': {
        const [value] = node.init
        if (value?.type === 'FunctionDeclaration')
          this.#function(value, `${this.#list(node.variables)} = function`, taken, indent)
        else line(`${this.#list(node.variables)} = ${this.#list(node.init)}`)
        return
      }
      case 'CallStatement':
        line(this.#text(node.expression))
        return
      case 'ReturnStatement':
        line(`return ${this.#list(node.arguments)}`.trimEnd())
        return
      case 'BreakStatement':
        line('break')
        return
      case 'FunctionDeclaration': {
        const name = this.#declare(node.identifier ? [node.identifier] : [], taken)
        this.#function(node, `local function ${name}`, taken, indent)
        return
      }
      case 'DoStatement':
        line('do')
        inside(node.body)
        break
      case 'IfStatement':
        for (const { type, condition, body } of node.clauses) {
          const word = type === 'IfClause' ? 'if' : 'elseif'
          this.#taken = taken
          line(condition ? `${word} ${this.#text(condition)} then` : 'else')
          inside(body)
        }
        break
      case 'WhileStatement':
        line(`while ${this.#text(node.condition)} do`)
        inside(node.body)
        break
      case 'ForNumericStatement': {
        const names = new Set(taken)
        const range = this.#list([node.start, node.end, ...(node.step ? [node.step] : [])])
        line(`for ${this.#declare([node.variable], names)} = ${range} do`)
        inside(node.body, names)
        break
      }
      case 'ForGenericStatement': {
        const names = new Set(taken)
        const iterators = this.#list(node.iterators)
        line(`for ${this.#declare(node.variables, names)} in ${iterators} do`)
        inside(node.body, names)
        break
      }
    }
    line('end')
  }

  /** @param {FunctionDeclaration} node @param {string} head @param {ReadonlySet<string>} taken @param {string} indent */
  #function(node, head, taken, indent) {
    const names = new Set(taken)
    this.#lines.push(`${indent}${head}(${this.#declare(node.parameters, names)})`)
    this.block(node.body, names, `${indent} `)
    this.#lines.push(`${indent}end`)
  }

  /** @param {readonly Declared[]} declared @param {Set<string>} taken */
  #declare(declared, taken) {
    // In all scripts, the text of such a section is the same, whatever the names around it.
    const section = this.#sections.find((each) => ADDED_SECTIONS.includes(each))
    const named = declared.map(({ local }) => {
      const own = section ? `${section}_${local.name}` : local.name
      let name = own
      for (let i = 2; taken.has(name); i++) name = `${own}_${i}`
      taken.add(name)
      return { local, name }
    })
    for (const { local, name } of named) this.#names.set(local, name)
    return named.map(({ name }) => name).join(', ')
  }

  /** @param {readonly Expression[]} nodes */
  #list(nodes) {
    return nodes.map((node) => this.#text(node)).join(', ')
  }

  /** @param {Expression} node @returns {string} */
  #text(node) {
    switch (node.type) {
      case 'Identifier': {
        if (!node.local && this.#taken.has(node.name)) throw new Error(`lua: ${node.name} means two things`)
        if (!node.local) return node.name
        const name = this.#names.get(node.local)
        if (name === undefined) throw new Error(`lua: ${node.name} is used where it is out of sight`)
        return name
      }
      case 'IndexExpression':
        return `${this.#text(node.base)}[${this.#text(node.index)}]`
      case 'MemberExpression':
        return `${this.#text(node.base)}${node.indexer}${node.identifier.name}`
      case 'CallExpression': {
        const text = `${this.#text(node.base)}(${this.#list(node.arguments)})`
        return node.inParens ? `(${text})` : text
      }
      case 'TableConstructorExpression':
        return node.fields.length > 0 ? `{ ${this.#list(node.fields.map(({ value }) => value))} }` : '{}'
      case 'UnaryExpression': {
        const isNested = node.argument.type === 'UnaryExpression'
        const argument = this.#operand(node.argument, strengthOf('unary'), isNested)
        return node.operator === 'not' ? `not ${argument}` : `${node.operator}${argument}`
      }
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const strength = strengthOf(node.operator)
        const isFromRight = node.operator === '..' || node.operator === '^'
        const left = this.#operand(node.left, strength, isFromRight)
        const right = this.#operand(node.right, strength, !isFromRight)
        return `${left} ${node.operator} ${right}`
      }
      case 'FunctionDeclaration':
        throw new Error('lua: a function stands only where it is named')
      default:
        return node.raw
    }
  }

  /** @param {Expression} node @param {number} strength of the operator @param {boolean} isWeaker whether equals need brackets */
  #operand(node, strength, isWeaker) {
    const text = this.#text(node)
    const isOperator = node.type === 'BinaryExpression' || node.type === 'LogicalExpression'
    if (!isOperator && node.type !== 'UnaryExpression') return text
    const own = strengthOf(isOperator ? node.operator : 'unary')
    return own < strength || (isWeaker && own === strength) ? `(${text})` : text
  }
}
