// `npm run build:sql`: embeds the SQL of packages/policies/sql in a module, so that it is there wherever the package runs, a
// user's own bundle too. With --check it only looks whether the module is up to date.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const FROM = join(root, 'packages/policies/sql')
const TO = join(root, 'packages/policies/src/sources/postgres/migrations.generated.ts')

/** One for each version of the tables, in order: `postgres-1.sql`. */
function renderModule() {
  const versions = readdirSync(FROM).map((file) => Number(/^postgres-(\d+)\.sql$/.exec(file)?.[1]))
  const texts = versions
    .sort((a, b) => a - b)
    .map((version) => readFileSync(join(FROM, `postgres-${version}.sql`), 'utf8'))
  const head = '// Made by scripts/build-sql.js from packages/policies/sql: do not edit.'
  return `${head}\n\nexport const MIGRATIONS: readonly string[] = ${JSON.stringify(texts)}\n`
}

await whenStarted(import.meta.url, () => {
  const module = renderModule()
  if (!process.argv.includes('--check')) writeFileSync(TO, module)
  else if (readFileSync(TO, 'utf8') !== module) {
    throw new Error(`${relative(root, TO)} is stale; run: npm run build:sql`)
  }
  console.log(`packages/policies/sql: ${module.length} bytes`)
})
