import { migratePostgres, migrationSql, TABLES_VERSION, tablesVersion } from '@sluice/policies'
import { POSTGRES_OPTIONS, schemaOf, withPostgres } from '../../postgres/client.js'
import { agreed } from '../../program/agreed.js'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'

export const migrate: Command = {
  name: 'migrate',
  summary: 'make the tables of policies and overrides in PostgreSQL, or bring them up to date',
  description: `Makes the tables sluice_policies and sluice_overrides in PostgreSQL, or brings them up to date, in one transaction for
each version. Where they are up to date, nothing is changed. The user of the connection owns the tables.`,
  options: {
    ...POSTGRES_OPTIONS,
    sql: { type: 'boolean', text: 'print the SQL of all versions, and ask no PostgreSQL' },
    yes: { type: 'boolean', short: 'y', text: 'do not ask' },
  },
  examples: [
    'DATABASE_URL=postgres://owner@host/database sluice migrate',
    'sluice migrate --sql --schema limits > tables.sql',
  ],
  notes: EXIT_CODES,

  async run(values, environment) {
    const { stdout, stderr } = environment
    const schema = schemaOf(values)
    if (values.sql) {
      for (let from = 0; from < TABLES_VERSION; from++) stdout.write(`BEGIN;\n${migrationSql(from, schema)}COMMIT;\n`)
      return DONE
    }
    return withPostgres(values, environment, async (query) => {
      const version = await tablesVersion(query, schema)
      if (version >= TABLES_VERSION) {
        stdout.write(`the tables are up to date, of version ${version}\n`)
        return DONE
      }
      const question = `Bring the tables from version ${version} to ${TABLES_VERSION}?`
      if (!values.yes && !(await agreed(environment, question, 'makes or changes the tables'))) {
        stderr.write('sluice: nothing was changed\n')
        return REFUSED
      }
      stdout.write(`the tables are of version ${await migratePostgres(query, schema)}\n`)
      return DONE
    })
  },
}
