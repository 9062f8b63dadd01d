import { emitWarning, type StoreWarning, type Warnings } from '../../util/warnings.js'

/**
 * Minimum ms between two warnings of one store about the same cause, so that an unstable Redis does not flood the log.
 */
const EVERY_MS = 60_000

/** Maximum levels of `cause` that are read. */
const MAX_CAUSES = 5

interface Reason {
  /** Matches messages of this kind up to the first quote: a key or a name may follow. */
  readonly pattern: RegExp
  readonly what: string
  readonly remedy: string
  /** Whether the cause can pass without a change of settings, as a lost connection can. */
  readonly passes?: boolean
}

const REASONS: readonly Reason[] = [
  {
    pattern: /\bunknown command/i,
    what: 'it does not know a command that Sluice sends',
    remedy: 'Do not rename or disable the commands that SECURITY.md lists',
  },
  {
    // Messages of scripts of Redis 6.2 and 7.0, of later scripts, and of commands.
    pattern: /The user executing the script can|ACL failure|NOPERM/,
    what: 'NOPERM, its user may not run a command or touch a key that Sluice needs',
    remedy: 'Grant the user what SECURITY.md lists',
  },
  {
    pattern: /WRONGPASS|invalid password|invalid username-password/,
    what: 'WRONGPASS, it refuses the user name or the password',
    remedy: 'Check the credentials of the client, and that the user is on',
  },
  {
    pattern: /NOAUTH|unauthenticated|Authentication required/,
    what: 'NOAUTH, it asks for a password',
    remedy: 'Give the client a password',
  },
  {
    pattern: /READONLY/,
    what: 'READONLY, it is a replica',
    remedy: 'Connect to the master, or by Sentinel or Cluster, which find it',
  },
  {
    pattern: /CROSSSLOT|\bMOVED \d|\bASK \d/,
    what: 'it is in cluster mode, and the client is for a single server',
    remedy: 'Use Cluster of ioredis or createCluster of redis, for a cluster of one shard too',
  },
  {
    pattern: /\bOOM\b/,
    what: 'OOM, it is full and evicts nothing',
    remedy: 'Raise maxmemory, or remove what else is stored there',
  },
  {
    pattern: /MISCONF/,
    what: 'MISCONF, it cannot save and therefore refuses writes',
    remedy: 'Look for the cause in its log: mostly a full disk, or a folder that it may not write to',
  },
  {
    pattern: /NOREPLICAS/,
    what: 'NOREPLICAS, it misses replicas and therefore refuses writes',
    remedy: 'Start its replicas, or lower min-replicas-to-write',
  },
  {
    pattern: /max number of clients/,
    what: 'it has as many clients as maxclients allows',
    remedy: 'Raise maxclients, or close connections: each store opens one',
  },
  {
    pattern: /ECONNREFUSED/,
    what: 'ECONNREFUSED, nothing listens at its address',
    remedy: 'Check that Redis is started, and the host and port of the client',
    passes: true,
  },
  {
    pattern: /ENOTFOUND|EAI_AGAIN/,
    what: 'its host name does not resolve',
    remedy: 'Check the host of the client, and DNS',
    passes: true,
  },
  {
    pattern: /LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN/,
    what: 'it answers, but is loading, busy or not in a state to decide',
    remedy: 'It comes back by itself; look into its log if it does not',
    passes: true,
  },
  {
    pattern: /no (answer|reply) (within|for)|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ECONNRESET|EPIPE|not connected/,
    what: 'it does not answer in time, or the connection broke',
    remedy: 'Check that Redis runs, that the network lets through, and that timeout suits the distance',
    passes: true,
  },
]

/**
 * Emits a process warning that a store is unavailable, with the cause and a remedy, once per outage. A cause that only
 * a change of settings can end is reported even after another one: a Redis that was not started may turn out to refuse
 * the password. No cause is repeated within a minute. Messages of Redis are cut at the first quote, since keys of
 * clients may follow.
 */
export class OutageWarnings {
  readonly #emit: Warnings<StoreWarning>['emit']
  readonly #now: () => number
  /** Causes reported during this outage. */
  readonly #said = new Set<Reason | undefined>()
  readonly #saidAt = new Map<Reason | undefined, number>()

  /** `now` in ms, by any monotonic clock. */
  constructor(emit: Warnings<StoreWarning>['emit'] = emitWarning, now: () => number = () => performance.now()) {
    this.#emit = emit
    this.#now = now
  }

  /** Notes an error of an outage, which begins or continues. */
  failed(node: string, error: Error): void {
    const texts = textsOf(error)
    const reason = REASONS.find(({ pattern }) => texts.some((text) => pattern.test(text)))
    if (this.#said.has(reason) || (this.#said.size > 0 && (!reason || reason.passes))) return
    this.#said.add(reason)
    const now = this.#now()
    if (now - (this.#saidAt.get(reason) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return
    this.#saidAt.set(reason, now)
    const what = reason?.what ?? texts.find((text) => text !== '') ?? 'the cause is not known'
    const remedy = reason?.remedy ?? 'onStateChange gets the error itself'
    this.#emit(
      'SLUICE_STORE_UNAVAILABLE',
      `the rate limit store on Redis${node && ` (${node})`} is unavailable: ${what}. ${remedy}. ` +
        'Until it answers, limiters decide by their unavailable option',
    )
  }

  /** Notes the end of the outage. */
  ended(): void {
    this.#said.clear()
  }
}

/** The messages of an error and its causes, the root cause first, without possible client data. */
function textsOf(error: Error): string[] {
  const texts: string[] = []
  let at: unknown = error
  for (let depth = 0; at instanceof Error && depth < MAX_CAUSES; depth++, at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    const [text = ''] = at.message.split(/['"`]/, 1)
    texts.unshift(text.slice(0, 120).trim() || String(code ?? ''))
  }
  return texts
}
