// Makes nodes.

/** @import { AssignmentStatement, BooleanLiteral, Declared, DoStatement, Expression, LocalStatement, Local, NilLiteral, NumericLiteral, Statement } from './nodes.js' */

/** @param {Local} local @returns {Declared} */
export const identifier = (local) => ({ type: 'Identifier', name: local.name, local })

/** @param {number} value 0 or more: a negative number is a minus before a literal @returns {NumericLiteral} */
export const number = (value) => ({ type: 'NumericLiteral', value, raw: String(value) })

/** @param {boolean} value @returns {BooleanLiteral} */
export const boolean = (value) => ({ type: 'BooleanLiteral', value, raw: String(value) })

/** @returns {NilLiteral} */
export const nil = () => ({ type: 'NilLiteral', raw: 'nil' })

/** @param {readonly Local[]} locals @param {Expression[]} init @returns {LocalStatement} */
export const declaration = (locals, init) => ({ type: 'LocalStatement', variables: locals.map(identifier), init })

/** @param {readonly Local[]} targets @param {Expression[]} values @returns {AssignmentStatement} */
export const assignment = (targets, values) => ({
  type: 'AssignmentStatement',
  variables: targets.map(identifier),
  init: values.length > 0 ? values : [nil()],
})

/** A block with its own scope, until `flattenBlocks` removes it. @param {Statement[]} body @returns {DoStatement} */
export const block = (body) => ({ type: 'DoStatement', isOurs: true, body })

/** An expression as one value, wherever it goes. @param {Expression} node @returns {Expression} */
export const oneValue = (node) => (node.type === 'CallExpression' ? { ...node, inParens: true } : node)
