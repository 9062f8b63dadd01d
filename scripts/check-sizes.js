// `npm run check:sizes`: bounds the sizes of classes and functions in packages/*/src and scripts/.
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import {
  isClassDeclaration,
  isClassExpression,
  isConstructorDeclaration,
  isFunctionLikeDeclaration,
  isPrivateIdentifier,
  isPropertyAssignment,
  isPropertyDeclaration,
  isVariableDeclaration,
  SyntaxKind,
} from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/** @typedef {import('typescript/unstable/ast').Node} Node */
/** @typedef {{ file: string, name: string, lines: number, fields?: number }} Size a class has `fields` */

const LIMITS = { classLines: 400, privateFields: 15, functionLines: 60 }

/**
 * Classes and functions that may be larger, with the reason: an immutable result may have more fields, as nothing can get them
 * out of step. Each goes as soon as it is not needed.
 *
 * @type {Record<string, string>}
 */
const LARGER = {}

/**
 * The classes and functions of files, in their order.
 *
 * @param {readonly string[]} files
 * @returns {Size[]}
 */
export function sizesIn(files) {
  const api = new API()
  try {
    const snapshot = api.updateSnapshot({ openFiles: [...files] })
    return files.flatMap((file) => {
      const source = snapshot.getDefaultProjectForFile(file)?.program.getSourceFile(file)
      if (!source) throw new Error(`${relative(root, file)}: TypeScript does not read it`)
      return sizesOf(source, relative(root, file))
    })
  } finally {
    api.close()
  }
}

/**
 * @param {import('typescript/unstable/ast').SourceFile} source
 * @param {string} file
 */
function sizesOf(source, file) {
  /** @type {Size[]} */
  const sizes = []
  /** @param {Node} node @param {string} outer the class or function that it lies in */
  const visit = (node, outer) => {
    const isClass = isClassDeclaration(node) || isClassExpression(node)
    let name = outer
    if (isClass || isFunctionLikeDeclaration(node)) {
      name = [outer, nameOf(node)].filter(Boolean).join('.')
      // Without its docstring.
      const lines = source.text.slice(node.getStart(source, false), node.end).split('\n').length
      sizes.push({ file, name, lines, ...(isClass ? { fields: node.members.filter(isPrivateField).length } : {}) })
    }
    node.forEachChild((child) => visit(child, name))
  }
  visit(source, '')
  return sizes
}

/**
 * The name of a class or a function, or of the variable or property that holds it.
 *
 * @param {Node & { name?: Node }} node
 */
function nameOf(node) {
  if (isConstructorDeclaration(node)) return 'constructor'
  const { parent } = node
  const isHeld = isVariableDeclaration(parent) || isPropertyAssignment(parent) || isPropertyDeclaration(parent)
  return (node.name ?? (isHeld ? parent.name : undefined))?.getText() ?? 'anonymous'
}

/** @param {Node} member */
function isPrivateField(member) {
  if (!isPropertyDeclaration(member)) return false
  return (
    isPrivateIdentifier(member.name) || (member.modifiers ?? []).some(({ kind }) => kind === SyntaxKind.PrivateKeyword)
  )
}

/**
 * @param {readonly Size[]} sizes
 * @param {Readonly<Record<string, string>>} larger the exceptions, by name
 * @returns {string[]} what is too large, and the exceptions that nothing needs
 */
export function problemsOfSizes(sizes, larger) {
  const found = sizes.flatMap((size) => excessesOf(size).map((excess) => ({ ...size, excess })))
  const used = new Set(found.map(({ name }) => name))
  return [
    ...found.flatMap(({ file, name, excess }) => (name in larger ? [] : [`${file}: ${name} has ${excess}`])),
    ...Object.keys(larger).flatMap((name) => (used.has(name) ? [] : [`the exception for ${name} is not needed`])),
  ]
}

/** @param {Size} size */
function excessesOf({ lines, fields }) {
  const { classLines, privateFields, functionLines } = LIMITS
  const isClass = fields !== undefined
  const max = isClass ? classLines : functionLines
  return [
    ...(lines > max ? [`${lines} lines, more than ${max}`] : []),
    ...(isClass && fields > privateFields ? [`${fields} private fields, more than ${privateFields}`] : []),
  ]
}

/** @param {string} folder */
const programsIn = (folder) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.generated)\.(ts|js)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))

await whenStarted(import.meta.url, () => {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/src`)
  const sizes = sizesIn([...packages, 'scripts'].flatMap(programsIn).sort())
  const problems = problemsOfSizes(sizes, LARGER)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  console.log(`${sizes.length} classes and functions are within their sizes`)
})
