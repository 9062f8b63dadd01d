import type { HttpContext, KeyFunction } from '@sluice/core'
import { emitWarning, ipAddress, isSecretKind } from '@sluice/core/internal'
import type { LimitData } from '../document/document.js'
import { isThenable, type Later } from '../match/later.js'
import { type Problem, shown, textOfPath } from '../problems/problem.js'
import { checkChanges } from '../schema/check.js'
import { type CountedOf, countedIn } from './counted-of.js'
import type { Keys } from './keys.js'
import { changedLimits } from './make-overrides.js'
import type { OverrideTable, StoredOverride } from './override-table.js'
import { type FoundOverride, holdsFor, type Override, type Overrides, RANK, variantBy, variantOf } from './overrides.js'
import type { CompiledPolicy, Variant } from './policy.js'
import { uncountedKind } from './uncounted-kind.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>
// biome-ignore lint/suspicious/noExplicitAny: as above
type Key = KeyFunction<any>

/** Finds further problems of an override's limits. */
export type CheckOverride = (limits: readonly object[]) => readonly Problem[]

/** Compiled limits in memory. Clients with the same limits share them. */
const MAX_MADE = 10_000
/** Longer values have no override: a table holds 1,024 bytes of each. */
const MAX_VALUE = 1024
/** Warnings about mistakes in one policy: each may be a row of its own. */
const MAX_WARNINGS = 10

const NONE: FoundOverride = { override: undefined, rank: RANK.none }

/**
 * The overrides of one policy, of its document and of a table beside it. An override of the table is exact, like an exact one
 * of the document. Where both have one for the same client, that of the document counts.
 */
export class TableOverrides {
  readonly #policy: CompiledPolicy
  readonly #own: Overrides | undefined
  readonly #table: OverrideTable
  readonly #keys: Keys
  readonly #check: CheckOverride | undefined
  /** Undefined for kinds that code does not register. */
  readonly #keyOf = new Map<string, Key | undefined>()
  /** By their limits as JSON. Undefined for wrong ones. */
  readonly #made = new Map<string, Override | undefined>()
  #warnings = 0

  constructor(
    policy: CompiledPolicy,
    own: Overrides | undefined,
    table: OverrideTable,
    keys: Keys,
    check: CheckOverride | undefined,
  ) {
    this.#policy = policy
    this.#own = own
    this.#table = table
    this.#keys = keys
    this.#check = check
  }

  /** The variant for a request: `base`, where no override is for it. A promise only where something has to be awaited. */
  choose(base: Variant, context: Context): Later<Variant> {
    const stored = this.#lookUp(context, countedIn(context))
    if (stored instanceof Promise) return stored.then((known) => this.#choose(base, known, context))
    return this.#choose(base, stored, context)
  }

  #choose(base: Variant, stored: FoundOverride, context: Context): Later<Variant> {
    if (!stored.override) return this.#own ? this.#own.choose(base, context) : base
    const found = this.#better(stored, context, countedIn(context))
    if (found instanceof Promise) return found.then(({ override }) => variantOf(override as Override, base))
    return variantOf(found.override as Override, base)
  }

  /** The variant for a client whose values are given apart. */
  chooseGiven(base: Variant, context: Context, countedOf: CountedOf): Later<Variant> {
    return variantBy(this.find(context, countedOf), base)
  }

  /** The override for a request, or for a client whose values are given apart. */
  find(context: Context, countedOf = countedIn(context)): Later<FoundOverride> {
    const stored = this.#lookUp(context, countedOf)
    return stored instanceof Promise
      ? stored.then((known) => this.#better(known, context, countedOf))
      : this.#better(stored, context, countedOf)
  }

  /** The override of the table, or one of the document for fewer clients. */
  #better(stored: FoundOverride, context: Context, countedOf: CountedOf): Later<FoundOverride> {
    const own = this.#own?.find(context, countedOf) ?? NONE
    const better = (known: FoundOverride) => (known.rank >= stored.rank ? known : stored)
    return own instanceof Promise ? own.then(better) : better(own)
  }

  /** The override of the table for a request. */
  #lookUp(context: Context, countedOf: CountedOf): Later<FoundOverride> {
    const kinds = this.#table.kindsOf(this.#policy.name)
    if (kinds.size === 0) return NONE
    const all: { readonly rank: number; readonly stored: unknown }[] = []
    let isLate = false
    for (const kind of kinds) {
      const stored = kind === 'ip' ? this.#ofAddress(context.ip) : this.#ofKind(kind, countedOf)
      if (stored === undefined) continue
      isLate ||= isThenable(stored)
      all.push({ rank: kind === 'ip' ? RANK.address : RANK.exact, stored })
    }
    if (all.length === 0) return NONE
    if (!isLate) return this.#best(all, context)
    return Promise.all(all.map(async ({ rank, stored }) => ({ rank, stored: await stored }))).then((known) =>
      this.#best(known, context),
    )
  }

  #best(all: readonly { readonly rank: number; readonly stored: unknown }[], context: Context): FoundOverride {
    const now = Date.now()
    let best = NONE
    for (const { rank, stored } of all) {
      if (rank <= best.rank) continue
      const override = this.#inForce(stored as StoredOverride | undefined, now)
      const holds = holdsFor(rank === RANK.address, context)
      if (override && holds(override)) best = { override, rank }
    }
    return best
  }

  #ofAddress(ip: string | undefined): Later<StoredOverride | undefined> {
    const address = ip === undefined ? undefined : ipAddress(ip)
    const hex = address?.first.map((word) => word.toString(16).padStart(8, '0')).join('')
    return hex === undefined ? undefined : this.#table.find(this.#policy.name, 'ip', hex)
  }

  #ofKind(kind: string, countedOf: CountedOf): Later<StoredOverride | undefined> {
    if (!this.#keyOf.has(kind)) this.#keyOf.set(kind, this.#makeKey(kind))
    const key = this.#keyOf.get(kind)
    const value = key && countedOf(kind, key)
    return isThenable(value)
      ? Promise.resolve(value).then((known) => this.#ofValue(kind, known))
      : this.#ofValue(kind, value)
  }

  #ofValue(kind: string, value: unknown): Later<StoredOverride | undefined> {
    if (value === undefined || value === null) return undefined
    const text = String(value)
    if (text.length > MAX_VALUE) return undefined
    // Keys count secrets by their hash, in base64url; people write it in hexadecimal digits.
    const identity = isSecretKind(kind) ? `sha256:${Buffer.from(text, 'base64url').toString('hex')}` : text
    return this.#table.find(this.#policy.name, kind, identity)
  }

  #makeKey(kind: string): Key | undefined {
    const problems: Problem[] = []
    try {
      const key = this.#keys.make(kind, [], problems)
      if (key) {
        const message = uncountedKind(this.#policy, kind)
        if (message) emitWarning('SLUICE_OVERRIDE_KIND', `${this.#table.name}: kind ${shown(kind)}: ${message}`)
        return key
      }
    } catch (error) {
      problems.push({ path: [], message: (error as Error).message })
    }
    this.#warn(`kind ${shown(kind)}: ${problems[0]?.message}`)
    return undefined
  }

  #inForce(stored: StoredOverride | undefined, now: number): Override | undefined {
    if (!stored || (stored.until !== undefined && stored.until <= now)) return undefined
    const override = this.#overrideOf(stored)
    if (override) return override
    stored.isWrong = true
    return this.#inForce(stored.before, now)
  }

  /** The override for an identity that is given by its kind, whatever the request. `value`: as it is counted. */
  async findGiven(kind: string, value: string): Promise<Override | undefined> {
    const { name } = this.#policy
    const isStored = this.#table.kindsOf(name).has(kind)
    const address = kind === 'ip' ? value.split('/', 1)[0] : undefined
    const stored = isStored ? await (kind === 'ip' ? this.#ofAddress(address) : this.#ofValue(kind, value)) : undefined
    const found = this.#inForce(stored, Date.now())
    return found ? { ...found, until: stored?.until } : this.#own?.findGiven(kind, value)
  }

  #overrideOf({ limits }: StoredOverride): Override | undefined {
    if (this.#made.has(limits)) return this.#made.get(limits)
    const override = this.#make(limits)
    // The oldest one goes.
    if (this.#made.size >= MAX_MADE) this.#made.delete(this.#made.keys().next().value as string)
    this.#made.set(limits, override)
    return override
  }

  #make(text: string): Override | undefined {
    const problems: Problem[] = []
    try {
      const changes: unknown = JSON.parse(text)
      checkChanges(changes, ['limits'], problems)
      if (problems.length === 0) problems.push(...(this.#check?.(changes as LimitData[]) ?? []))
      if (problems.length === 0) {
        const data = { limits: changes as LimitData[] }
        const changed = changedLimits(data, this.#policy, this.#keys, ['limits'], problems)
        // The time of each is its own.
        if (problems.length === 0) return { index: this.#table.name, changed, until: undefined }
      }
    } catch (error) {
      problems.push({ path: ['limits'], message: (error as Error).message })
    }
    this.#warn(problems.map(({ path, message }) => `${textOfPath(path)}: ${message}`).join('; '))
    return undefined
  }

  #warn(fault: string): void {
    if (++this.#warnings > MAX_WARNINGS) return
    const effect = 'such overrides have no effect, and the last right one of a client stays where it is known'
    const message = `${this.#table.name}: policy ${shown(this.#policy.name)}: ${fault}: ${effect}`
    process.emitWarning(message, { type: 'SluiceWarning', code: 'SLUICE_OVERRIDE_FAILED' })
  }
}
