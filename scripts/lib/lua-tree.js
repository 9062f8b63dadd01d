// Lua as a tree: read, walked, copied and written. Every local variable is an object of its own, so that code can be
// moved about without one name being taken for another; what it is called is settled when the tree is written.
import luaparse from 'luaparse'

/**
 * A node of luaparse's tree. Of an identifier that names a local variable, `local` says which.
 *
 * @typedef {any} Node
 * @typedef {{ name: string, isConstant?: boolean }} Local
 */

/** The parts of each kind of node, in the order in which they are evaluated or declared. @type {Record<string, string[]>} */
const PARTS = {
  Chunk: ['body'],
  LocalStatement: ['init', 'variables'],
  AssignmentStatement: ['init', 'variables'],
  CallStatement: ['expression'],
  ReturnStatement: ['arguments'],
  BreakStatement: [],
  DoStatement: ['body'],
  IfStatement: ['clauses'],
  IfClause: ['condition', 'body'],
  ElseifClause: ['condition', 'body'],
  ElseClause: ['body'],
  WhileStatement: ['condition', 'body'],
  ForNumericStatement: ['start', 'end', 'step', 'variable', 'body'],
  ForGenericStatement: ['iterators', 'variables', 'body'],
  FunctionDeclaration: ['identifier', 'parameters', 'body'],
  CallExpression: ['base', 'arguments'],
  IndexExpression: ['base', 'index'],
  MemberExpression: ['base'],
  BinaryExpression: ['left', 'right'],
  LogicalExpression: ['left', 'right'],
  UnaryExpression: ['argument'],
  TableConstructorExpression: ['fields'],
  TableValue: ['value'],
  Identifier: [],
  NumericLiteral: [],
  StringLiteral: [],
  BooleanLiteral: [],
  NilLiteral: [],
}

/** @param {Node} node @returns {string[]} */
function partsOf(node) {
  const parts = PARTS[node.type]
  if (!parts) throw new Error(`lua: ${node.type} is not supported here`)
  return parts
}

/** The nodes right below one. @param {Node} node @returns {Node[]} */
export function below(node) {
  const found = []
  for (const part of partsOf(node)) {
    const child = node[part]
    if (Array.isArray(child)) found.push(...child)
    else if (child) found.push(child)
  }
  return found
}

/** Visits a node and all below it, from the outside in. @param {Node} node @param {(node: Node) => void} visit */
export function walk(node, visit) {
  visit(node)
  for (const child of below(node)) walk(child, visit)
}

/**
 * Puts in the place of each node below one what `change` makes of it, from the inside out: in a list, it may be several.
 *
 * @param {Node} node
 * @param {(node: Node) => Node | Node[]} change
 */
export function rewrite(node, change) {
  for (const part of partsOf(node)) {
    const child = node[part]
    if (!child) continue
    for (const each of Array.isArray(child) ? child : [child]) rewrite(each, change)
    node[part] = Array.isArray(child) ? child.flatMap(change) : change(child)
  }
}

/**
 * A copy of a node, with local variables of its own for those that are declared in it.
 *
 * @template T
 * @param {T & Node} node
 * @returns {T}
 */
export function copy(node) {
  const fresh = new Map([...declaredIn(node)].map((local) => [local, { name: local.name }]))
  return copied(node, fresh)
}

/** @param {Node} node @param {Map<Local, Local>} fresh @returns {Node} */
function copied(node, fresh) {
  const result = { ...node }
  if (node.local) result.local = fresh.get(node.local) ?? node.local
  for (const part of partsOf(node)) {
    const child = node[part]
    if (Array.isArray(child)) result[part] = child.map((each) => copied(each, fresh))
    else if (child) result[part] = copied(child, fresh)
  }
  return result
}

/** The identifiers with which a node declares variables, if any. @param {Node} node @returns {Node[]} */
export function declaredBy(node) {
  if (node.type === 'LocalStatement' || node.type === 'ForGenericStatement') return node.variables
  if (node.type === 'ForNumericStatement') return [node.variable]
  if (node.type === 'FunctionDeclaration') return [...(node.identifier ? [node.identifier] : []), ...node.parameters]
  return []
}

/** @param {Node} node @returns {Set<Local>} */
function declaredIn(node) {
  const locals = new Set()
  walk(node, (each) => {
    for (const { local } of declaredBy(each)) locals.add(local)
  })
  return locals
}

/** @param {Local} local @returns {Node} */
export const identifier = (local) => ({ type: 'Identifier', name: local.name, local })
/** @param {number} value @returns {Node} */
export const number = (value) => ({ type: 'NumericLiteral', value, raw: String(value) })
/** @param {boolean} value @returns {Node} */
export const boolean = (value) => ({ type: 'BooleanLiteral', value, raw: String(value) })
/** @returns {Node} */
export const nil = () => ({ type: 'NilLiteral', value: null, raw: 'nil' })
/** @param {Local[]} locals @param {Node[]} init @returns {Node} */
export const declaration = (locals, init) => ({ type: 'LocalStatement', variables: locals.map(identifier), init })

/**
 * The tree of a script. Lines `--@…` in it become statements that are only marks.
 *
 * @param {string} source
 * @returns {Node}
 */
export function parseLua(source) {
  const marked = source.replace(/^--@(.*)$/gm, (_, mark) => `${MARK}('${mark}')`)
  const chunk = luaparse.parse(marked, { luaVersion: '5.1', comments: false, ranges: true })
  walk(chunk, (node) => {
    if (node.type === 'CallExpression') node.inParens = isInBrackets(marked, node.range)
  })
  resolve(chunk.body, new Map())
  return chunk
}

const MARK = '__mark'

/**
 * Whether a call stands in brackets of its own, which leave only the first of its results: the parser does not say.
 *
 * @param {string} source
 * @param {[number, number]} range
 */
function isInBrackets(source, [start, end]) {
  const before = /(\w*|[)\]'"])\s*\($/.exec(source.slice(Math.max(0, start - 40), start).trimEnd())
  const isCall = before?.[1] && !/^(and|elseif|if|in|not|or|return|until|while)$/.test(before[1])
  return before !== null && !isCall && source.slice(end).trimStart().startsWith(')')
}

/** @param {Node} node @returns {string | undefined} what stands after `--@`, of a statement that is a mark */
function markOf(node) {
  const call = node.type === 'CallStatement' ? node.expression : undefined
  return call?.base.name === MARK ? call.arguments[0].raw.slice(1, -1) : undefined
}

/**
 * Says of each identifier in a block which variable it names.
 *
 * @param {Node[]} block
 * @param {Map<string, Local>} around the variables that are in sight
 */
function resolve(block, around) {
  const scope = new Map(around)
  for (const statement of block) resolveIn(statement, scope)
}

/** @param {Node} node @param {Map<string, Local>} scope */
function resolveIn(node, scope) {
  if (node.type === 'Identifier') {
    const local = scope.get(node.name)
    if (local) node.local = local
    return
  }
  // In sight in the rest of the block: a local function in itself too, other variables not in what they begin with.
  const own = new Set([node.variables, node.variable, node.identifier, node.parameters].flat().filter(Boolean))
  const isLocal = node.type === 'LocalStatement' || (node.type === 'FunctionDeclaration' && node.isLocal)
  if (node.type === 'FunctionDeclaration' && node.identifier) {
    if (!isLocal) throw new Error('lua: functions are local, or kept in a table')
    declare(node.identifier, scope)
  }
  const declares = new Set(declaredBy(node))
  for (const child of below(node)) if (!own.has(child) && !isInBody(node, child)) resolveIn(child, scope)
  const inside = node.type === 'LocalStatement' ? scope : new Map(scope)
  for (const child of own) {
    if (child === node.identifier) continue
    if (declares.has(child)) declare(child, inside)
    else resolveIn(child, scope)
  }
  if (Array.isArray(node.body)) resolve(node.body, inside)
}

/** @param {Node} node @param {Node} child */
const isInBody = (node, child) => Array.isArray(node.body) && node.body.includes(child)

/** @param {Node} node @param {Map<string, Local>} scope */
function declare(node, scope) {
  node.local = { name: node.name }
  scope.set(node.name, node.local)
}

/**
 * The text of a tree, one statement a line.
 *
 * @param {Node} chunk
 * @returns {string}
 */
export function printLua(chunk) {
  /** @type {string[]} */
  const lines = []
  new Printer(lines).block(chunk.body, new Set(), '')
  return `${lines.join('\n')}\n`
}

const BINDING = ['or', 'and', '< > <= >= ~= ==', '..', '+ -', '* / %', 'unary', '^']
const STRENGTH = new Map(BINDING.flatMap((operators, i) => operators.split(' ').map((operator) => [operator, i + 1])))
const UNARY = /** @type {number} */ (STRENGTH.get('unary'))

class Printer {
  /** What each variable is called: as in the source, unless another in sight is. @type {Map<Local, string>} */
  #names = new Map()
  /** Names that are in sight at the statement at hand. @type {Set<string>} */
  #taken = new Set()
  #lines

  /** @param {string[]} lines */
  constructor(lines) {
    this.#lines = lines
  }

  /** @param {Node[]} statements @param {Set<string>} around names that are taken @param {string} indent */
  block(statements, around, indent) {
    const taken = new Set(around)
    for (const statement of statements) this.#statement(statement, taken, indent)
  }

  /** @param {Node} node @param {Set<string>} taken @param {string} indent */
  #statement(node, taken, indent) {
    const line = (/** @type {string} */ text) => this.#lines.push(indent + text)
    const inside = (/** @type {Node[]} */ body, names = taken) => this.block(body, names, `${indent} `)
    const mark = markOf(node)
    this.#taken = taken
    if (mark !== undefined) {
      this.#lines.push(`--@${mark}`)
      return
    }
    switch (node.type) {
      case 'LocalStatement': {
        const init = node.init.length > 0 ? ` = ${this.#list(node.init)}` : ''
        line(`local ${this.#declare(node.variables, taken)}${init}`)
        return
      }
      case 'AssignmentStatement':
        if (node.init[0].type === 'FunctionDeclaration') {
          this.#function(node.init[0], `${this.#list(node.variables)} = function`, taken, indent)
          return
        }
        line(`${this.#list(node.variables)} = ${this.#list(node.init)}`)
        return
      case 'CallStatement':
        line(this.#text(node.expression))
        return
      case 'ReturnStatement':
        line(`return ${this.#list(node.arguments)}`.trimEnd())
        return
      case 'BreakStatement':
        line('break')
        return
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
      case 'FunctionDeclaration': {
        const name = this.#declare([node.identifier], taken)
        this.#function(node, `local function ${name}`, taken, indent)
        return
      }
    }
    line('end')
  }

  /** @param {Node} node @param {string} head @param {Set<string>} taken @param {string} indent */
  #function(node, head, taken, indent) {
    const names = new Set(taken)
    this.#lines.push(`${indent}${head}(${this.#declare(node.parameters, names)})`)
    this.block(node.body, names, `${indent} `)
    this.#lines.push(`${indent}end`)
  }

  /** @param {Node[]} identifiers @param {Set<string>} taken */
  #declare(identifiers, taken) {
    const names = identifiers.map(({ local }) => {
      let name = local.name
      for (let i = 2; taken.has(name); i++) name = `${local.name}_${i}`
      taken.add(name)
      return name
    })
    for (const [i, { local }] of identifiers.entries()) this.#names.set(local, /** @type {string} */ (names[i]))
    return names.join(', ')
  }

  /** @param {Node[]} nodes */
  #list(nodes) {
    return nodes.map((node) => this.#text(node)).join(', ')
  }

  /** @param {Node} node @returns {string} */
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
        return node.fields.length > 0 ? `{ ${this.#list(node.fields)} }` : '{}'
      case 'TableValue':
        return this.#text(node.value)
      case 'UnaryExpression': {
        const argument = this.#operand(node.argument, UNARY, node.argument.type === 'UnaryExpression')
        return node.operator === 'not' ? `not ${argument}` : `${node.operator}${argument}`
      }
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const strength = /** @type {number} */ (STRENGTH.get(node.operator))
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

  /** @param {Node} node @param {number} strength of the operator @param {boolean} isWeaker whether equals need brackets */
  #operand(node, strength, isWeaker) {
    const own = node.type === 'UnaryExpression' ? UNARY : STRENGTH.get(node.operator)
    const text = this.#text(node)
    return own !== undefined && (own < strength || (isWeaker && own === strength)) ? `(${text})` : text
  }
}
