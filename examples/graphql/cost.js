// @ts-check
// What a query of GraphQL costs, before it runs: a point for each field of each object that it may return.
import {
  GraphQLError,
  getArgumentValues,
  getNamedType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isListType,
  Kind,
  parse,
  typeFromAST,
} from 'graphql'

const MAX_TOKENS = 500
/** More than any limit: sums and products stay whole numbers. */
const MAX_COST = 1_000_000
const [DEFAULT_PAGE, MAX_PAGE] = [10, 100]

/**
 * The number of objects that a list may return. Resolvers cut their lists by it, too.
 *
 * @param {Record<string, any>} args
 */
export const pageOf = ({ first }) => Math.min(MAX_PAGE, Math.max(1, Math.trunc(first ?? DEFAULT_PAGE)))

/**
 * Reads the body of a request. It is not validated yet: that takes longer than the estimate.
 *
 * @param {import('graphql').GraphQLSchema} schema
 * @param {string} body
 * @throws GraphQLError, or SyntaxError for what is no JSON
 */
export function readQuery(schema, body) {
  // Several operations in an array are not read: each would take its own cost.
  const { query, operationName, variables } = JSON.parse(body) ?? {}
  if (typeof query !== 'string') throw new GraphQLError('Expected one query.')
  const document = parse(query, { maxTokens: MAX_TOKENS, noLocation: true })
  const operation = getOperationAST(document, operationName)
  if (!operation || operation.operation === 'subscription') throw new GraphQLError('Expected one query or mutation.')
  const { coerced, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {})
  if (!coerced) throw errors?.[0] ?? new GraphQLError('Expected other variables.')
  return { document, operationName, variables, points: costOf(schema, document, operation, coerced) }
}

/**
 * @param {import('graphql').GraphQLSchema} schema
 * @param {import('graphql').DocumentNode} document
 * @param {import('graphql').OperationDefinitionNode} operation
 * @param {Record<string, unknown>} variables with the defaults of the operation
 * @throws GraphQLError for fragments that contain themselves, and for wrong arguments
 */
function costOf(schema, document, operation, variables) {
  const fragments = document.definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
  const unread = new Map(fragments.map((fragment) => [fragment.name.value, fragment]))
  /** The cost of each fragment, read once, or undefined while it is read. @type {Map<string, number | undefined>} */
  const costs = new Map()

  /** @param {string} name */
  const costOfFragment = (name) => {
    const fragment = unread.get(name)
    if (fragment) {
      unread.delete(name)
      costs.set(name, undefined)
      costs.set(name, costOfAll(fragment.selectionSet, typeFromAST(schema, fragment.typeCondition)))
    }
    const cost = costs.get(name)
    if (cost === undefined) throw new GraphQLError('Expected fragments that exist and do not contain themselves.')
    return cost
  }
  /** @param {import('graphql').FieldNode} node @param {any} type @returns {number} */
  const costOfField = (node, type) => {
    const field = type?.getFields?.()[node.name.value]
    // `__typename`, and what validation rejects.
    if (!field) return 1
    const args = getArgumentValues(field, node, variables)
    const times = isListType(getNullableType(field.type)) ? pageOf(args) : 1
    return times * (1 + costOfAll(node.selectionSet, getNamedType(field.type)))
  }
  /** @param {import('graphql').SelectionSetNode | undefined} set @param {unknown} type @returns {number} */
  const costOfAll = (set, type) => {
    let cost = 0
    for (const node of set?.selections ?? []) {
      if (node.kind === Kind.FIELD) cost += costOfField(node, type)
      else if (node.kind === Kind.FRAGMENT_SPREAD) cost += costOfFragment(node.name.value)
      else cost += costOfAll(node.selectionSet, node.typeCondition ? typeFromAST(schema, node.typeCondition) : type)
    }
    return Math.min(MAX_COST, cost)
  }
  return costOfAll(operation.selectionSet, schema.getRootType(operation.operation))
}
