import type { HttpContext, KeyFunction } from '@sluice/core'
import {
  emitWarning,
  ipAddress,
  isSecretKind,
  type MaybePromise,
  whenAllKnown,
  whenKnown,
  writtenHash,
} from '@sluice/core/internal'
import type { LimitData } from '../document/document.js'
import { type Problem, shown, textOfPath } from '../problems/problem.js'
import { checkChanges } from '../schema/check.js'
import { type CountedOf, countedIn } from './counted-of.js'
import type { Keys } from './keys.js'
import { changedLimits } from './make-overrides.js'
import type { OverrideTable, StoredOverride } from './override-table.js'
import { holdsFor, type Overrides, RANK } from './overrides.js'
import type { ChangedLimits, CompiledPolicy, Override } from './policy.js'
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
/** Warnings a minute about mistakes in one policy: each may be a row of its own. */
const MAX_WARNINGS = 10
const MINUTE_MS = 60_000

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
  /** By the changes as JSON. A text says what is wrong with them. */
  readonly #made = new Map<string, ChangedLimits | string>()
  /** Wrong ones whose warning has come. */
  readonly #warned = new WeakSet<StoredOverride>()
  #warnings = 0
  /** When the present minute of warnings began. */
  #warnedAt = Number.NEGATIVE_INFINITY

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

  /** The override for a request, or for a client whose values are given apart. A promise only where something has to be awaited. */
  find(context: Context, countedOf?: CountedOf): MaybePromise<Override | undefined> {
    const stored = this.#lookUp(context, countedOf ?? countedIn(context))
    return whenKnown(stored, (known) => {
      const found = this.#own?.find(context, countedOf)
      return known ? whenKnown(found, (other) => (other && other.rank >= known.rank ? other : known)) : found
    })
  }

  /** The override of the table for a request. */
  #lookUp(context: Context, countedOf: CountedOf): MaybePromise<Override | undefined> {
    const kinds = [...this.#table.kindsOf(this.#policy.name)]
    if (kinds.length === 0) return undefined
    const found = kinds.map((kind) => (kind === 'ip' ? this.#ofAddress(context.ip) : this.#ofKind(kind, countedOf)))
    return whenAllKnown(found, (stored) => this.#best(kinds, stored as (StoredOverride | undefined)[], context))
  }

  #best(
    kinds: readonly string[],
    stored: readonly (StoredOverride | undefined)[],
    context: Context,
  ): Override | undefined {
    const now = Date.now()
    let best: Override | undefined
    for (const [i, kind] of kinds.entries()) {
      const override = this.#inForce(kind, stored[i], now)
      if (!override || override.rank <= (best?.rank ?? 0)) continue
      if (holdsFor(kind === 'ip', context)(override)) best = override
    }
    return best
  }

  #ofAddress(ip: string | undefined): MaybePromise<StoredOverride | undefined> {
    const address = ip === undefined ? undefined : ipAddress(ip)
    const hex = address?.first.map((word) => word.toString(16).padStart(8, '0')).join('')
    return hex === undefined ? undefined : this.#table.find(this.#policy.name, 'ip', hex)
  }

  #ofKind(kind: string, countedOf: CountedOf): MaybePromise<StoredOverride | undefined> {
    if (!this.#keyOf.has(kind)) this.#keyOf.set(kind, this.#makeKey(kind))
    const key = this.#keyOf.get(kind)
    const value = key && countedOf(kind, key)
    return whenKnown(value, (known) => this.#ofValue(kind, known))
  }

  #ofValue(kind: string, value: unknown): MaybePromise<StoredOverride | undefined> {
    if (value === undefined || value === null) return undefined
    const text = String(value)
    if (text.length > MAX_VALUE) return undefined
    return this.#table.find(this.#policy.name, kind, isSecretKind(kind) ? writtenHash(text) : text)
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

  #inForce(kind: string, stored: StoredOverride | undefined, now: number): Override | undefined {
    if (!stored || (stored.until !== undefined && stored.until <= now)) return undefined
    const changed = this.#changesOf(stored)
    const rank = kind === 'ip' ? RANK.address : RANK.exact
    if (typeof changed === 'object') return { index: this.#table.name, rank, changed, until: stored.until }
    const fault = `kind ${shown(kind)}: version ${stored.version}: ${changed}`
    if (!this.#warned.has(stored) && this.#warn(fault)) this.#warned.add(stored)
    stored.isWrong = true
    return this.#inForce(kind, stored.before, now)
  }

  /** The override for an identity that is given by its kind, whatever the request. `value`: as it is counted. */
  async findGiven(kind: string, value: string): Promise<Override | undefined> {
    const isStored = this.#table.kindsOf(this.#policy.name).has(kind)
    const address = kind === 'ip' ? value.split('/', 1)[0] : undefined
    const stored = isStored ? await (kind === 'ip' ? this.#ofAddress(address) : this.#ofValue(kind, value)) : undefined
    return this.#inForce(kind, stored, Date.now()) ?? this.#own?.findGiven(kind, value)
  }

  #changesOf({ limits }: StoredOverride): ChangedLimits | string {
    const known = this.#made.get(limits)
    if (known !== undefined) return known
    const changed = this.#make(limits)
    // The oldest one goes.
    if (this.#made.size >= MAX_MADE) this.#made.delete(this.#made.keys().next().value as string)
    this.#made.set(limits, changed)
    return changed
  }

  #make(text: string): ChangedLimits | string {
    const problems: Problem[] = []
    try {
      const changes: unknown = JSON.parse(text)
      checkChanges(changes, ['limits'], problems)
      if (problems.length === 0) problems.push(...(this.#check?.(changes as LimitData[]) ?? []))
      if (problems.length === 0) {
        const data = { limits: changes as LimitData[] }
        const changed = changedLimits(data, this.#policy, this.#keys, ['limits'], problems)
        if (problems.length === 0) return changed
      }
    } catch (error) {
      problems.push({ path: ['limits'], message: (error as Error).message })
    }
    return problems.map(({ path, message }) => `${textOfPath(path)}: ${message}`).join('; ')
  }

  /** Returns whether the warning is among those of this minute. */
  #warn(fault: string): boolean {
    const now = performance.now()
    if (now - this.#warnedAt >= MINUTE_MS) {
      this.#warnedAt = now
      this.#warnings = 0
    }
    if (++this.#warnings > MAX_WARNINGS) return false
    const effect = 'such overrides have no effect, and the last right one of a client stays where it is known'
    const message = `${this.#table.name}: policy ${shown(this.#policy.name)}: ${fault}: ${effect}`
    process.emitWarning(message, { type: 'SluiceWarning', code: 'SLUICE_OVERRIDE_FAILED' })
    return true
  }
}
