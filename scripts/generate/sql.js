// Embeds the SQL of packages/policies/sql in a module, so that it is there wherever the package runs, a
// user's own bundle too.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'

const FROM = join(root, 'packages/policies/sql')
const TO = 'packages/policies/src/sources/postgres/migrations.generated.ts'

/** One for each version of the tables, in order: `postgres-1.sql`. */
function renderModule() {
  const versions = readdirSync(FROM).map((file) => Number(/^postgres-(\d+)\.sql$/.exec(file)?.[1]))
  const texts = versions
    .sort((a, b) => a - b)
    .map((version) => readFileSync(join(FROM, `postgres-${version}.sql`), 'utf8'))
  const head = '// Made by `npm run generate` from packages/policies/sql: do not edit.'
  return `${head}\n\nexport const MIGRATIONS: readonly string[] = ${JSON.stringify(texts)}\n`
}

export const make = () => ({ [TO]: renderModule() })
