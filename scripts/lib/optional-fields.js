import ts from 'typescript5'

/**
 * Declarations whose optional fields may be undefined, too: `limit?: number | undefined`. Under `exactOptionalPropertyTypes`,
 * which `tsc --init` sets, they may not be otherwise, and users pass on options that they may have. Our sources are compiled
 * without it: there `limit?: number` says so already.
 *
 * @param {string} declarations
 */
export function withUndefined(declarations) {
  const source = ts.createSourceFile('declarations.d.ts', declarations, ts.ScriptTarget.Latest, true)
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = []
  const insert = (/** @type {number} */ at, /** @type {string} */ text) => edits.push({ start: at, end: at, text })
  /** @param {ts.Node} node */
  const visit = (node) => {
    const type = optionalType(node)
    if (type && !admitsUndefined(type)) {
      const isOpen = OPEN.includes(type.kind)
      if (isOpen) insert(type.getStart(source), '(')
      ts.forEachChild(node, visit)
      insert(type.end, isOpen ? ') | undefined' : ' | undefined')
    } else if (isPartial(node)) {
      const whole = node.typeArguments.map((argument) => argument.getText(source)).join()
      const text = `{ readonly [Field in keyof ${whole}]?: ${whole}[Field] | undefined }`
      edits.push({ start: node.getStart(source), end: node.end, text })
    } else ts.forEachChild(node, visit)
  }
  visit(source)
  let end = 0
  const parts = edits.map((edit) => {
    const before = declarations.slice(end, edit.start)
    end = edit.end
    return before + edit.text
  })
  return parts.join('') + declarations.slice(end)
}

/** Types that would take ` | undefined` for their own. */
const OPEN = [ts.SyntaxKind.FunctionType, ts.SyntaxKind.ConstructorType, ts.SyntaxKind.ConditionalType]

/**
 * The type of an optional field, or of the optional fields that a mapped type has.
 *
 * @param {ts.Node} node
 */
function optionalType(node) {
  const isField = ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || ts.isMappedTypeNode(node)
  return isField && node.questionToken ? node.type : undefined
}

/** @param {ts.TypeNode} type @returns {boolean} */
function admitsUndefined(type) {
  if (ts.isUnionTypeNode(type)) return type.types.some(admitsUndefined)
  return [ts.SyntaxKind.UndefinedKeyword, ts.SyntaxKind.UnknownKeyword, ts.SyntaxKind.AnyKeyword].includes(type.kind)
}

/** @param {ts.Node} node @returns {node is ts.TypeReferenceNode & { typeArguments: ts.NodeArray<ts.TypeNode> }} */
function isPartial(node) {
  return ts.isTypeReferenceNode(node) && ts.isIdentifier(node.typeName) && node.typeName.text === 'Partial'
}
