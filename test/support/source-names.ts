import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript5'

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url))

/** Every name by which the sources of the packages may read a property, in order. Generated files aside. */
export function namesInSources(packages: readonly string[] = readdirSync(PACKAGES)): readonly string[] {
  const names = new Set<string>()
  for (const file of packages.flatMap(sourcesOf)) {
    const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)
    const visit = (node: ts.Node): void => {
      for (const name of namesIn(node)) names.add(name)
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return [...names].sort()
}

function sourcesOf(name: string): string[] {
  const root = `${PACKAGES}${name}/src/`
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
    .map((file) => root + file)
}

/** `a.name`, `a['name']`, `const { name } = a`, `'name' in a`, and the names that options and tables are read by in lists. */
function namesIn(node: ts.Node): string[] {
  if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.name)) return [node.name.text]
  if (ts.isBindingElement(node)) return textsOf(node.propertyName ?? node.name)
  if (ts.isPropertySignature(node)) return textsOf(node.name)
  if (ts.isStringLiteral(node) && /^[A-Za-z_$][\w$-]*$/.test(node.text)) return [node.text]
  return []
}

function textsOf(name: ts.Node): string[] {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) ? [name.text] : []
}
