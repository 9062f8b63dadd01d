/** A failure of PostgreSQL: one sentence with the problem and the remedy. */
export class PostgresFailure extends Error {}

interface Cause {
  readonly pattern: RegExp
  /** The problem and the remedy, without a full stop. `$1` stands for the match of the pattern's group. */
  readonly says: string
}

/** By SQLSTATE or code of the system, and message; the first that fits counts. */
const CAUSES: readonly Cause[] = [
  { pattern: /^28P01 /, says: 'the password is wrong for this user: check the connection string' },
  {
    pattern: /^\S* SASL.*(?:password|string)/i,
    says: 'it needs a password, and the connection string has none: put it there, percent-encoded',
  },
  {
    pattern: /^28000 /,
    says: 'it does not let this user in: check the user of the connection string, and pg_hba.conf of the server',
  },
  { pattern: /^3D000 .*database ("[^"]{1,63}")/, says: 'there is no database $1: check the connection string' },
  {
    pattern: /^42501 .*permission denied for (?:table|relation|sequence|schema) ("?[\w]{1,63}"?)/,
    says: 'permission is denied for $1: grant it to this user, as docs/policies-in-postgres.md shows',
  },
  {
    pattern: /^42501 /,
    says: 'permission is denied: the user needs the grants that docs/policies-in-postgres.md shows',
  },
  {
    pattern: /^42P01 .*relation ("[^"]{1,200}")/,
    says: 'there is no table $1: sluice migrate makes the tables, or `schema` names another schema',
  },
  { pattern: /^3F000 /, says: 'there is no such schema: create it, or name another by `schema`' },
  {
    pattern: /^42703 /,
    says: 'a table sluice_… has other columns than expected: another program has made it, or sluice migrate has to bring it up to date',
  },
  { pattern: /^53300 /, says: 'it has no connection left: raise max_connections, or close some' },
  {
    pattern: /^08P01 .*(?:server login|server_login)/,
    says: 'the pooler cannot connect to it: check that the server behind the pooler is up',
  },
  { pattern: /^(?:57P03|57P01|57P02) /, says: 'it is starting, or shutting down: wait until it is up' },
  { pattern: /^25006 /, says: 'it is read-only, such as a standby: name the primary' },
  { pattern: /^23514 .*constraint ("[^"]{1,63}")/, says: 'a value breaks the constraint $1' },
  { pattern: /ECONNREFUSED/, says: 'nothing listens there (ECONNREFUSED): check host and port, and that it runs' },
  { pattern: /ENOTFOUND|EAI_AGAIN/, says: 'the host name does not resolve: check the host, and DNS on this machine' },
  { pattern: /^ENOENT /, says: 'there is no such socket (ENOENT): check the folder of the socket, and that it runs' },
  {
    pattern: /EHOSTUNREACH|ENETUNREACH/,
    says: 'there is no way to that address in the network: check network and firewall',
  },
  {
    pattern: /does not support SSL/i,
    says: 'it does not support TLS: remove sslmode from the connection string, or turn ssl on in postgresql.conf',
  },
  {
    pattern: /CERT|self.signed|unable to (?:verify|get)|ALTNAME/i,
    says: 'its TLS certificate is not trusted: pass the authority by sslrootcert, or NODE_EXTRA_CA_CERTS, and check the host name',
  },
  {
    pattern: /timeout|TIMEDOUT|timed out/i,
    says: 'it does not answer in time: check that it is not overloaded or stopped, and that no firewall swallows packets',
  },
  {
    pattern: /ECONNRESET|EPIPE|terminated|closed|not queryable/i,
    says: 'the connection is closed: it was restarted, or something between has closed it',
  },
]

/** Turns any error of `pg` into one of ours. Its own message may quote values, so only its start is repeated. */
export function failureOf(error: unknown): PostgresFailure {
  if (error instanceof PostgresFailure) return error
  const { code = '', message = '', errors = [] } = (error ?? {}) as Partial<AggregateError> & { code?: string }
  // Where a host has several addresses, each has failed.
  const [first] = errors as readonly { message?: string }[]
  const text = `${code} ${message || first?.message || ''}`
  for (const { pattern, says } of CAUSES) {
    const found = pattern.exec(text)
    if (found) return new PostgresFailure(`PostgreSQL: ${says.replace('$1', found[1] ?? '')}`, { cause: error })
  }
  const [start = ''] = message.split(/["'`\r\n]/, 1)
  return new PostgresFailure(`PostgreSQL fails with ${JSON.stringify(`${code} ${start}`.trim().slice(0, 120))}`, {
    cause: error,
  })
}
