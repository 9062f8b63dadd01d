export type { CarriedLimit } from './compile/carried.js'
export type { Explanation, RequestToExplain } from './compile/explain.js'
export type { LimitsForIdentity, RequestOfIdentity } from './compile/for-identity.js'
export type { ChangedLimit, LimitNumbers } from './compile/planned-override.js'
export type { ResolverOf, Resolvers } from './compile/resolvers.js'
export { type ReadDocument, readDocument } from './document/read-document.js'
export { type PoliciesOptions, policies } from './from.js'
export type { ChangeBy, OverrideOf, OverrideToSet, PlannedOverride, PolicyOverrides } from './overrides.js'
export {
  carriedLimits,
  differencesOf,
  findingsIn,
  Policies,
  type PoliciesEvents,
  problemsIn,
} from './policies.js'
export { PoliciesError } from './problems/policies-error.js'
export { type LocatedProblem, lineOf, type Path, type Problem } from './problems/problem.js'
export { PostgresFailure } from './sources/postgres/failures.js'
export { migratePostgres, migrationSql, TABLES_VERSION, tablesVersion } from './sources/postgres/migrate.js'
export type { PostgresOptions } from './sources/postgres/options.js'
export { PostgresDocuments } from './sources/postgres/postgres-documents.js'
export type { Query } from './sources/postgres/sql.js'
export { type Call, RedisDocuments } from './sources/redis-documents.js'
export { type SavedDocument, type SavedDocuments, VersionConflict } from './sources/saved-documents.js'
export {
  OverrideConflict,
  type OverridePage,
  type OverridesQuery,
  type SavedOverride,
} from './sources/saved-overrides.js'
export type { DocumentVersion, ListedVersion, PlannedRollback, PolicyVersions, RollbackTo } from './versions.js'
