/** Why a Redis cannot be used, as a clause without a full stop, and the remedy. */
export interface Cause {
  readonly what: string
  readonly advice: string
}

/** By the texts of errors of the system, of TLS and of Redis. The first that fits counts. */
const CAUSES: readonly (Cause & { readonly pattern: RegExp })[] = [
  {
    pattern: /WRONGPASS|invalid password|invalid username-password/i,
    what: 'it refuses the user name or the password (WRONGPASS)',
    advice: 'Check the credentials in REDIS_URL, percent-encoded, and that the user is on: ACL GETUSER',
  },
  {
    pattern: /NOAUTH|unauthenticated|Authentication required/i,
    what: 'it needs a password, and REDIS_URL has none (NOAUTH)',
    advice: 'Put the credentials into REDIS_URL: redis://user:password@host:6379',
  },
  {
    pattern: /DENIED Redis is running in protected mode/,
    what: 'it is in protected mode and accepts connections of its own machine alone',
    advice: 'Give Redis a password, or bind it to an address that only your servers reach and turn protected-mode off',
  },
  {
    pattern: /max number of clients/,
    what: 'it has as many clients as maxclients allows',
    advice: 'Raise maxclients, or close connections: CLIENT LIST shows who holds them',
  },
  {
    pattern: /\bLOADING\b/,
    what: 'it is still loading its data (LOADING)',
    advice: 'Wait: INFO persistence shows loading_eta_seconds. Limiters decide by their option unavailable meanwhile',
  },
  {
    pattern: /\bBUSY\b/,
    what: 'a script runs for so long that Redis replies to nothing else (BUSY)',
    advice: 'Look for the script of another application; SCRIPT KILL ends one that has not written',
  },
  {
    pattern: /MASTERDOWN/,
    what: 'it is a replica that has lost its master and serves nothing (MASTERDOWN)',
    advice: 'Connect to the master, and look for why it is away',
  },
  {
    pattern: /SELECT is not allowed in cluster mode/,
    what: 'it is a Redis Cluster, which has database 0 alone',
    advice: 'Remove the number of the database from REDIS_URL',
  },
  {
    pattern: /DB index is out of range|invalid DB index/,
    what: 'it does not have the database that REDIS_URL names',
    advice: 'Use a lower number in REDIS_URL, or raise databases in redis.conf',
  },
  {
    pattern: /ECONNREFUSED/,
    what: 'nothing listens there (ECONNREFUSED)',
    advice: 'Check that Redis runs, and the host and port in REDIS_URL',
  },
  {
    pattern: /ENOTFOUND|EAI_AGAIN/,
    what: 'the host name does not resolve',
    advice: 'Check the host in REDIS_URL, and DNS on this machine',
  },
  {
    pattern: /ENOENT/,
    what: 'there is no such socket (ENOENT)',
    advice: 'Check the path in REDIS_URL against unixsocket in redis.conf',
  },
  {
    pattern: /EACCES|EPERM/,
    what: 'this user may not open the socket (EACCES)',
    advice: 'Check unixsocketperm in redis.conf and the user that runs this command',
  },
  {
    pattern: /EHOSTUNREACH|ENETUNREACH/,
    what: 'there is no way to that address in the network',
    advice: 'Check the network and the firewall between this machine and Redis',
  },
  {
    pattern: /CERT_HAS_EXPIRED/,
    what: 'its TLS certificate has expired',
    advice: 'Renew the certificate of Redis, and check the clock of this machine',
  },
  {
    pattern: /ALTNAME_INVALID/,
    what: 'its TLS certificate is for another host name',
    advice: 'Use the host name that the certificate holds, or issue one that holds this name',
  },
  {
    pattern: /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|self.signed|unable to (verify|get)/i,
    what: 'its TLS certificate is not signed by an authority that this machine trusts',
    advice: 'Pass the certificate authority of your Redis: --cacert ca.pem, or NODE_EXTRA_CA_CERTS',
  },
  {
    pattern:
      /certificate.required|handshake.failure|bad.certificate|unknown.ca\b|sslv3|tlsv1|ERR_SSL_(?!WRONG_VERSION|PACKET)/i,
    what: 'the TLS handshake fails, mostly since Redis wants a certificate of its clients',
    advice: 'Pass --cert and --key, or set tls-auth-clients no in redis.conf',
  },
  {
    pattern: /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|wrong version number|packet length too long/i,
    what: 'it does not speak TLS at that port',
    advice: 'Use redis:// instead of rediss://, or the port of tls-port',
  },
  {
    pattern: /TLS handshake: silence/,
    what: 'it does not finish the TLS handshake in time',
    advice:
      'Check that the port is one of TLS (tls-port), else use redis:// instead of rediss://, and that Redis is not stopped',
  },
  {
    pattern: /TLS handshake: closed/,
    what: 'it closed the connection after the TLS handshake, mostly since it wants a certificate of its clients',
    advice: 'Pass --cert and --key, or set tls-auth-clients no in redis.conf',
  },
  {
    pattern: /Protocol error|Unknown RESP type/,
    what: 'the server there is not Redis',
    advice: 'Check the host and port in REDIS_URL',
  },
  {
    pattern: /time is up/,
    what: 'the time that --timeout gives is up',
    advice:
      'Raise --timeout, or lower --scan-calls and --pings; if nothing was answered at all, check that Redis is not stopped',
  },
  {
    pattern: /TIMEDOUT|timed out/i,
    what: 'it does not answer in time',
    advice: 'Check that Redis is not stopped or swapping, and that no firewall swallows packets',
  },
  {
    pattern: /ECONNRESET|EPIPE|Connection is closed|socket hang up|closed/i,
    what: 'it closed the connection',
    advice: 'Check that REDIS_URL says rediss:// where Redis wants TLS, and look into the log of Redis',
  },
]

/** The cause of an error; of an unknown error its text up to the first quote, since keys or names may follow. */
export function causeOf(error: unknown): Cause {
  const { message = '', code = '' } = (error ?? {}) as { message?: string; code?: string }
  const text = `${code} ${message}`
  const known = CAUSES.find(({ pattern }) => pattern.test(text))
  if (known) return known
  const [start = ''] = message.split(/['"`\r\n]/, 1)
  return {
    what: `it fails with ${JSON.stringify((start.trim() || code || 'an error without a text').slice(0, 120))}`,
    advice: 'Look into the log of Redis',
  }
}
