/**
 * The Lua that this package understands, as a tree. The shapes are luaparse's, without what is not supported.
 * This file holds types alone: Node never loads it, and JSDoc refers to it.
 */

/** A local variable. Each is a separate object, so code can move without confusion of equal names. */
export interface Local {
  /** As in the source. `printLua` adds a number where that name is taken. */
  readonly name: string
}

/** A name. Without `local` it is a global, such as `redis`. */
export interface Identifier {
  type: 'Identifier'
  name: string
  local?: Local
}

/** A name where a local variable is declared. */
export interface Declared extends Identifier {
  local: Local
}

export interface NumericLiteral {
  type: 'NumericLiteral'
  value: number
  /** As it is printed. */
  raw: string
}

export interface StringLiteral {
  type: 'StringLiteral'
  /** With its quotes. */
  raw: string
}

export interface BooleanLiteral {
  type: 'BooleanLiteral'
  value: boolean
  raw: string
}

export interface NilLiteral {
  type: 'NilLiteral'
  raw: string
}

export type Literal = NumericLiteral | StringLiteral | BooleanLiteral | NilLiteral

export interface BinaryExpression {
  type: 'BinaryExpression'
  operator: string
  left: Expression
  right: Expression
}

export interface LogicalExpression {
  type: 'LogicalExpression'
  operator: 'and' | 'or'
  left: Expression
  right: Expression
}

export interface UnaryExpression {
  type: 'UnaryExpression'
  operator: string
  argument: Expression
}

export interface CallExpression {
  type: 'CallExpression'
  base: Expression
  arguments: Expression[]
  /** Whether it is in brackets of its own, which leave only the first of its results. */
  inParens?: boolean
}

/** `base[index]` */
export interface IndexExpression {
  type: 'IndexExpression'
  base: Expression
  index: Expression
}

/** `base.identifier` */
export interface MemberExpression {
  type: 'MemberExpression'
  indexer: string
  base: Expression
  identifier: Identifier
}

export interface TableConstructorExpression {
  type: 'TableConstructorExpression'
  fields: TableValue[]
}

export interface TableValue {
  type: 'TableValue'
  value: Expression
}

/** `local function identifier(…)`, or the value of an assignment, then without an identifier. */
export interface FunctionDeclaration {
  type: 'FunctionDeclaration'
  identifier: Declared | null
  isLocal: boolean
  parameters: Declared[]
  body: Statement[]
  /** The number of its calls in the source. Set and used by `inlineStatements`. */
  calls?: number
  /** Whether it is too long to be copied to all of its callers. Set and used by `inlineStatements`. */
  stays?: boolean
}

export type Expression =
  | Identifier
  | Literal
  | BinaryExpression
  | LogicalExpression
  | UnaryExpression
  | CallExpression
  | IndexExpression
  | MemberExpression
  | TableConstructorExpression
  | FunctionDeclaration

/** `local variables = init`. `init` is empty, as long as `variables`, or one call with several results. */
export interface LocalStatement {
  type: 'LocalStatement'
  variables: Declared[]
  init: Expression[]
}

/** The target of an assignment. */
export type Target = Identifier | IndexExpression | MemberExpression

export interface AssignmentStatement {
  type: 'AssignmentStatement'
  variables: Target[]
  init: Expression[]
}

export interface CallStatement {
  type: 'CallStatement'
  expression: CallExpression
}

export interface ReturnStatement {
  type: 'ReturnStatement'
  arguments: Expression[]
}

export interface BreakStatement {
  type: 'BreakStatement'
}

export interface DoStatement {
  type: 'DoStatement'
  body: Statement[]
  /** Whether a pass made it, to keep names apart. `flattenBlocks` removes these. */
  isOurs?: boolean
}

export interface IfStatement {
  type: 'IfStatement'
  clauses: Clause[]
}

export interface ConditionClause {
  type: 'IfClause' | 'ElseifClause'
  condition: Expression
  body: Statement[]
}

export interface ElseClause {
  type: 'ElseClause'
  condition?: undefined
  body: Statement[]
}

export type Clause = ConditionClause | ElseClause

export interface WhileStatement {
  type: 'WhileStatement'
  condition: Expression
  body: Statement[]
}

export interface ForNumericStatement {
  type: 'ForNumericStatement'
  variable: Declared
  start: Expression
  end: Expression
  step: Expression | null
  body: Statement[]
}

export interface ForGenericStatement {
  type: 'ForGenericStatement'
  variables: Declared[]
  iterators: Expression[]
  body: Statement[]
}

/** A line `--@when bucket` or `--@end`: where a section begins or ends. Stays where it is. */
export interface MarkStatement {
  type: 'MarkStatement'
  /** The text after `--@`. */
  mark: string
}

export type Statement =
  | LocalStatement
  | AssignmentStatement
  | CallStatement
  | ReturnStatement
  | BreakStatement
  | DoStatement
  | IfStatement
  | WhileStatement
  | ForNumericStatement
  | ForGenericStatement
  | FunctionDeclaration
  | MarkStatement

export interface Chunk {
  type: 'Chunk'
  body: Statement[]
}

export type Node = Chunk | Statement | Clause | TableValue | Expression
