import { setTimeout as sleep } from 'node:timers/promises'
import type {
  GivenClient,
  HttpContext,
  IdentityByKind,
  MatchedPolicies,
  PoliciesReloadedEvent,
  PolicySource,
} from '@sluice/core'
import { emitWarning, guardByPolicies, isPropertyOf, Listeners, propertyOf } from '@sluice/core/internal'
import { type CarriedLimit, carriedBetween } from './compile/carried.js'
import { compile, compileBetween, pauses } from './compile/compile.js'
import type { CompiledPolicies } from './compile/compiled-policies.js'
import type { Explanation, RequestToExplain } from './compile/explain.js'
import type { LimitsForIdentity, RequestOfIdentity } from './compile/for-identity.js'
import type { ANY_RESOLVER, Resolvers } from './compile/resolvers.js'
import type { CheckOverride } from './compile/table-overrides.js'
import { checkText } from './document/check-text.js'
import { differencesBetween } from './document/differences.js'
import type { PolicyDocument } from './document/document.js'
import { type ReadDocument, readDocument } from './document/read-document.js'
import { LimitChanges } from './limit-changes.js'
import { PolicyOverrides } from './overrides.js'
import { PoliciesError } from './problems/policies-error.js'
import { type LocatedProblem, lineOf, type Problem } from './problems/problem.js'
import type { Loaded, PoliciesSource } from './sources/source.js'
import { checkDocument, contentsOf } from './sources/source.js'
import { PolicyVersions } from './versions.js'

/** Options of loading policies, beside their source. */
export interface LoadOptions {
  readonly resolvers: Resolvers
  /** Whether a document may have fewer than half of the policies, limits and overrides that it had. */
  readonly allowShrink: boolean
  /** A document that applies until the source has one. Undefined for none. */
  readonly fallback: unknown
  readonly loadTimeoutMs: number
  /** Finds problems of a document whose form is valid. */
  readonly check: ((document: ReadDocument) => readonly Problem[] | Promise<readonly Problem[]>) | undefined
  readonly checkOverride: CheckOverride | undefined
}

/** Throws for a policy that its guard cannot decide by. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Check = (matched: MatchedPolicies<any>) => unknown

/** The document in force. */
interface InForce {
  readonly compiled: CompiledPolicies
  readonly version: string
  /** Different for different contents. */
  readonly mark: string
}

/** Attempts to read a file that is being written. */
const MAX_TRIES = 50
const TRY_AGAIN_MS = 100

/** The events of `policies.on()`. */
export interface PoliciesEvents {
  readonly 'policies-reloaded': PoliciesReloadedEvent
}

/** Policies in force, for `rateLimit({ policies })`. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export class Policies implements PolicySource<any> {
  /** The overrides beside the document: each for one client, until a date. */
  readonly overrides: PolicyOverrides
  /** The versions of the document in Redis or PostgreSQL. Undefined for files, objects and functions. */
  readonly versions: PolicyVersions | undefined
  readonly #source: PoliciesSource
  readonly #options: LoadOptions
  readonly #listeners = new Listeners<PoliciesEvents>('policies', ['policies-reloaded'])
  readonly #changes: LimitChanges
  /** Those of the guards that decide by these policies. */
  readonly #checks: Check[] = []
  #inForce: InForce
  #error: PoliciesError | undefined
  /** One after the other, so that an earlier version never follows a later one. */
  #lastReload: Promise<void> = Promise.resolve()
  /** The reload that is under way. It picks up versions that have come meanwhile. */
  #reloading: Promise<void> | undefined
  #isClosed = false

  private constructor(source: PoliciesSource, options: LoadOptions, inForce: InForce, changes: LimitChanges) {
    this.#source = source
    this.#changes = changes
    this.#options = options
    this.#inForce = inForce
    this.overrides = new PolicyOverrides(source, () => this.#inForce.compiled)
    const documents = propertyOf(source, 'documents')
    this.versions =
      documents &&
      new PolicyVersions(documents, {
        check: async ({ version, text }) =>
          void (await this.#checked({ name: source.name, version: `${version}`, text })),
        carried: carriedLimits,
        reload: () => this.reload(),
      })
    propertyOf(source, 'overrides')?.onChange(() => changes.sendCalmly())
    if (!isPropertyOf(source, 'watch')) return
    source.watch?.(
      () => this.#changed(),
      (error) => this.#fail(unreadable(source, error)),
    )
  }

  /** @internal */
  makeGuard(options: never): unknown {
    return guardByPolicies(options)
  }

  /** @internal Use `policies.from()`. */
  static async load(source: PoliciesSource, options: LoadOptions): Promise<Policies> {
    const changes = new LimitChanges()
    const first = firstMade(source, options, changes)
    try {
      return new Policies(source, options, await inTime(first, source, options.loadTimeoutMs), changes)
    } catch (error) {
      if (options.fallback === undefined) {
        if (isPropertyOf(source, 'close')) await source.close?.()
        throw error
      }
      const inForce = await made(fallbackOf(options.fallback), source, options, changes)
      const policies = new Policies(source, options, inForce, changes)
      policies.#fail(error instanceof PoliciesError ? error : unreadable(source, error))
      // It may come late.
      first.then(
        () => policies.#changed(),
        () => {},
      )
      return policies
    }
  }

  /** The version of the document in force: a different text for each document. */
  get version(): string {
    return this.#inForce.version
  }

  /** Why the present document is not in force. Undefined if it is. */
  get error(): PoliciesError | undefined {
    return this.#error
  }

  /** The policies in force, each by itself. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  get byName(): ReadonlyMap<string, MatchedPolicies<any>> {
    return this.#inForce.compiled.byName
  }

  /**
   * Calls back when other policies come into force. An error that a listener throws becomes a warning of the process
   * (`SLUICE_LISTENER_FAILED`). Returns a function that ends it.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on(event: 'policies-reloaded', listener: (event: PoliciesReloadedEvent) => unknown): () => void {
    return this.#listeners.on(event, listener)
  }

  /** @internal See `PolicySource`. */
  onCheck(check: Check): void {
    this.#checks.push(check)
  }

  /** @internal Calls back when the limits of clients may have changed. */
  onChange(listener: () => unknown): () => void {
    return this.#changes.on(listener)
  }

  /** The policies that apply to a request, for `rateLimit`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  match(context: HttpContext<any>): ReturnType<CompiledPolicies['match']> {
    return this.#inForce.compiled.match(context)
  }

  /** The policy of this name for a client that is given by hand, for methods of a limiter. */
  forClient(name: string, client: GivenClient): ReturnType<CompiledPolicies['forClient']> {
    return this.#inForce.compiled.forClient(name, client)
  }

  /**
   * How each policy applies to a request: whether it does, why not, and by which tier and override. Charges nothing.
   *
   * @throws SluiceError `INVALID_POLICY` for a method, address or name of a header that is none
   */
  async explain(request: RequestToExplain): Promise<readonly Explanation[]> {
    return this.#inForce.compiled.explain(request)
  }

  /**
   * The limits of each policy for one identity, by tier, with its override: to show what it has left. Policies that have no
   * limits of its kind are left out. Charges nothing.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`
   */
  async forIdentity(identity: IdentityByKind, request: RequestOfIdentity = {}): Promise<readonly LimitsForIdentity[]> {
    return this.#inForce.compiled.forIdentity(identity, request)
  }

  /** @internal The policies in force as YAML, without clients: for the console. */
  shown(): CompiledPolicies['shown'] {
    return this.#inForce.compiled.shown
  }

  /** @internal The policies, by tier, that may apply to a request that is known in part: for the console. */
  forKnown(known: never): unknown {
    return this.#inForce.compiled.forKnown(known)
  }

  /**
   * Reads the document again now, and takes it if it is valid.
   *
   * @throws PoliciesError with all problems; the earlier document stays in force
   */
  reload(): Promise<void> {
    const reloaded = this.#lastReload.then(() => this.#reload())
    this.#lastReload = reloaded.catch(() => {})
    return reloaded
  }

  async #reload(): Promise<void> {
    const document = await loaded(this.#source)
    if (markOf(document) === this.#inForce.mark) {
      this.#error = undefined
      return
    }
    const next = await this.#checked(document)
    const previous = this.version
    this.#inForce = next
    this.#error = undefined
    this.#changes.send()
    if (!this.#listeners.hasListeners('policies-reloaded')) return
    const { version } = next
    const event = { source: this.#source.name, version, previous, policies: this.byName.size }
    this.#listeners.send('policies-reloaded', event)
  }

  /** @throws PoliciesError where the document is wrong, or follows badly on the one in force */
  async #checked(document: Loaded): Promise<InForce> {
    const next = await made(document, this.#source, this.#options, this.#changes, this.#checks)
    if (!this.#options.allowShrink) refuseShrunk(this.#source.name, this.#inForce.compiled.size, next.compiled.size)
    return next
  }

  /** Ends the updates of the policies. Those in force stay. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (isPropertyOf(this.#source, 'close')) await this.#source.close?.()
  }

  #changed(): void {
    if (this.#reloading || this.#isClosed) return
    this.#reloading = this.reload()
      .catch((error) => this.#fail(error instanceof PoliciesError ? error : unreadable(this.#source, error)))
      .finally(() => {
        this.#reloading = undefined
        if (!this.#isClosed && isPropertyOf(this.#source, 'look')) this.#source.look?.()
      })
  }

  /** Warns once of each fault: it is found again and again. */
  #fail(error: PoliciesError): void {
    if (this.#isClosed || this.#error?.message === error.message) return
    this.#error = error
    const message = `${error.message}\nThe policies from before, of version ${this.version}, stay in force`
    emitWarning('SLUICE_POLICIES_FAILED', message)
  }
}

/** With `await`, by which stacks of errors go on to the caller. */
async function firstMade(source: PoliciesSource, options: LoadOptions, changes: LimitChanges): Promise<InForce> {
  return await made(await loaded(source), source, options, changes)
}

async function loaded(source: PoliciesSource): Promise<Loaded> {
  try {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const document = await source.load()
      if (document) return document
      await sleep(TRY_AGAIN_MS)
    }
  } catch (error) {
    throw unreadable(source, error)
  }
  throw unreadable(source, new Error('it is written again and again'))
}

function fallbackOf(document: unknown): Loaded {
  return { name: 'fallback', version: 'fallback', ...contentsOf(document) }
}

/** Its result is ignored once the time is over. */
async function inTime<Value>(value: Promise<Value>, source: PoliciesSource, timeoutMs: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unreadable(source, new Error(`none came within ${timeoutMs} ms`))), timeoutMs)
  })
  try {
    return await Promise.race([value, late])
  } finally {
    clearTimeout(timer)
  }
}

function unreadable({ name }: PoliciesSource, error: unknown): PoliciesError {
  return faultOf(name, `expected a document that can be read: ${(error as Error).message}`)
}

function faultOf(source: string, message: string): PoliciesError {
  return new PoliciesError([{ source, line: undefined, column: undefined, path: '', message }])
}

async function made(
  document: Loaded,
  source: PoliciesSource,
  { resolvers, check, checkOverride }: LoadOptions,
  changes: LimitChanges,
  checks: readonly Check[] = [],
): Promise<InForce> {
  const { value, problems, located } = await checkDocument(document)
  if (problems.length > 0) throw new PoliciesError(problems)
  const more = (await check?.(value as ReadDocument)) ?? []
  if (more.length > 0) throw new PoliciesError(await located(more))
  const {
    compiled,
    problems: wrong,
    advice,
  } = await compileBetween(value as PolicyDocument, resolvers, propertyOf(source, 'overrides'), checkOverride, changes)
  if (!compiled) throw new PoliciesError(await located(wrong))
  const unfit = checks.length > 0 ? await problemsBy(checks, compiled) : []
  if (unfit.length > 0) throw new PoliciesError(await located(unfit))
  for (const problem of advice.length > 0 ? await located(advice) : [])
    emitWarning('SLUICE_OVERRIDE_KIND', lineOf(problem))
  return { compiled, version: document.version, mark: markOf(document) }
}

/** Guards make the limiters of a document, between requests, before it comes into force: their options may not fit it. */
async function problemsBy(checks: readonly Check[], { byName }: CompiledPolicies): Promise<Problem[]> {
  const problems: Problem[] = []
  const pause = pauses()
  for (const [name, matched] of byName) {
    for (const check of checks) {
      try {
        check(matched)
      } catch (error) {
        const [policy, ...tier] = name.split('.')
        problems.push({
          path: ['policies', policy as string, ...tier.flatMap((each) => ['tiers', each])],
          message: (error as Error).message,
        })
      }
    }
    await pause()
  }
  return problems
}

function markOf(document: Loaded): string {
  return propertyOf(document, 'mark') ?? document.version
}

/** The document may be cut off, or written by a job that failed. */
function refuseShrunk(source: string, before: number, now: number): void {
  if (2 * now >= before) return
  const expected = `at least half of the ${before} policies, limits and overrides that there were, got ${now}`
  throw faultOf(source, `expected ${expected} (with allowShrink it may shrink)`)
}

/**
 * All problems of a document; none where it is valid.
 *
 * @param text YAML or JSON
 * @param name its name in problems, such as the path of its file
 * @param resolvers the functions that code registers; `'any'` accepts every name
 */
export function problemsIn(
  text: string,
  name: string,
  resolvers: Resolvers | typeof ANY_RESOLVER = {},
): readonly LocatedProblem[] {
  return findingsIn(text, name, resolvers).problems
}

/** Like `problemsIn`, with `advice` on parts of a valid document that may be misunderstood. */
export function findingsIn(
  text: string,
  name: string,
  resolvers: Resolvers | typeof ANY_RESOLVER = {},
): { readonly problems: readonly LocatedProblem[]; readonly advice: readonly LocatedProblem[] } {
  const { value, problems } = checkText({ name, text })
  if (problems.length > 0) return { problems, advice: [] }
  const found = compile(value as PolicyDocument, resolvers)
  const located = (toLocate: readonly Problem[]) =>
    toLocate.length > 0 ? checkText({ name, text, toLocate }).problems : []
  return { problems: located(found.problems), advice: found.compiled ? located(found.advice) : [] }
}

/**
 * Whether used units still count when one document follows another, for each limit that changes. Empty where one of the
 * documents is wrong.
 *
 * @param before YAML or JSON
 */
export function carriedLimits(before: string, after: string): readonly CarriedLimit[] {
  const documents = [before, after].map((text) => checkText({ name: 'document', text }))
  if (documents.some(({ problems }) => problems.length > 0)) return []
  const [from, to] = documents.map(({ value }) => value as PolicyDocument)
  return carriedBetween(from as PolicyDocument, to as PolicyDocument)
}

/**
 * The differences between two documents, a line each, as `sluice plan` prints them. The clients of overrides, and values of `allow`,
 * `deny` and `match.headers`, are not shown.
 *
 * @param before YAML or JSON; undefined for none
 * @throws PoliciesError where one of them is no YAML or JSON
 */
export function differencesOf(before: string | undefined, after: string): string[] {
  return differencesBetween(before === undefined ? {} : readDocument(before), readDocument(after))
}
