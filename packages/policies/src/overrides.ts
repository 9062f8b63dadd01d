import { SluiceError, type StoreChanges } from '@sluice/core'
import { isPropertyOf, knownOptions, propertyOf, wholeNumber } from '@sluice/core/internal'
import type { CompiledPolicies } from './compile/compiled-policies.js'
import {
  type ChangedLimit,
  type ClientOfOverride,
  clientOfKey,
  type EffectOfOverride,
} from './compile/planned-override.js'
import { PoliciesError } from './problems/policies-error.js'
import { type Problem, shown, textOfPath } from './problems/problem.js'
import {
  MAX_OVERRIDES_LISTED,
  OverrideConflict,
  type OverridePage,
  type OverridePlace,
  type OverridesQuery,
  type SavedOverride,
  type SavedOverrides,
} from './sources/saved-overrides.js'
import type { PoliciesSource } from './sources/source.js'

/** The client whose override is meant, and its policy. */
export interface OverrideOf {
  readonly policy: string
  /** One value by its kind: `{ user: '42' }`. Headers, cookies and credentials as `sha256:` and 64 hexadecimal digits. */
  readonly key: Readonly<Record<string, string | number>>
  /**
   * The version of the override that is replaced, as `list` and `plan` report it; 0 for none.
   * @default for `set` 0; for `remove` any
   */
  readonly expected?: number
}

/** An override until a date. */
export interface OverrideToSet extends OverrideOf {
  /** The changed fields of a limit, which it names by `name`, as `limits` of an override in a document. */
  readonly limits: readonly object[]
  /** When it ends: a time with a zone (RFC 3339), or ms since 1970. In the future, within 100 years. */
  readonly until: string | number
  /** Up to 200 characters. @default '' */
  readonly reason?: string
}

/** The effect that an override would have. Plain data, as JSON holds it. */
export interface PlannedOverride extends EffectOfOverride {
  readonly policy: string
  /** The client that is affected. */
  readonly kind: string
  readonly value: string
  readonly until: number
  /** The override that it would replace. */
  readonly before: SavedOverride | undefined
  /** The version to pass as `expected`: that of `before`, or 0. */
  readonly version: number
  /** Whether `set` can write it: `policies.from` was given `save`, and the source is Redis or PostgreSQL. */
  readonly canSave: boolean
  /** The lines of a document with the same effect, to paste where `set` cannot write it. */
  readonly lines: string
  readonly changes: readonly ChangedLimit[]
}

/** Who makes a change, and where its entry is kept. */
export interface ChangeBy {
  /** Up to 100 characters. */
  readonly by: string
  /** `store.changes` of the store that the limits are counted in. */
  readonly changes: StoreChanges
}

const WHERE = 'overrides'
const LONGEST_MS = 100 * 365 * 86_400_000
const LONGEST_REASON = 200
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})$/

/** The overrides beside a document: each is for one client of one policy, until a date. */
export class PolicyOverrides {
  readonly #source: PoliciesSource
  readonly #saved: SavedOverrides | undefined
  /** The same on the connection that writes. */
  readonly #saving: SavedOverrides | undefined
  readonly #compiled: () => CompiledPolicies

  /** @internal */
  constructor(source: PoliciesSource, compiled: () => CompiledPolicies) {
    this.#source = source
    this.#saved = propertyOf(source, 'saved')
    this.#saving = propertyOf(source, 'writer')
    this.#compiled = compiled
  }

  /**
   * A page of the overrides in force beside the document. Those in the document itself are not among them.
   *
   * @throws SluiceError `INVALID_POLICY`; PostgresFailure, or the error of the client of Redis
   */
  async list(query: OverridesQuery = {}): Promise<OverridePage> {
    knownOptions(`${WHERE}.list`, query, ['policy', 'cursor', 'max'])
    const { policy, cursor, max = 100 } = query
    wholeNumber(`${WHERE}.list`, 'max', max, 1, MAX_OVERRIDES_LISTED)
    if (policy !== undefined && typeof policy !== 'string') wrong('list', 'policy: expected the name of a policy')
    if (cursor !== undefined && !/^-?\d{1,19}$/.test(cursor)) wrong('list', 'cursor: expected that of the page before')
    return (await this.#stored?.page(policy, cursor, max)) ?? { entries: [] }
  }

  /**
   * The override in force of a client beside the document. Undefined if there is none.
   *
   * @throws as `list`
   */
  async get(override: Omit<OverrideOf, 'expected'>): Promise<SavedOverride | undefined> {
    return this.#stored?.get(placeOf('get', override))
  }

  /**
   * The effect that an override would have on its client. Changes nothing.
   *
   * @throws PoliciesError with all mistakes; as `list`
   */
  async plan(override: OverrideToSet): Promise<PlannedOverride> {
    const { client, effect, until } = this.#check('plan', override)
    const { policy } = override
    const before = await this.#stored?.get({ policy, ...client })
    const { kind, value } = client
    const canSave = this.#saving !== undefined
    const lines = linesFor(override, client, until)
    return { policy, kind, value, until, ...effect, before, version: before?.version ?? 0, canSave, lines }
  }

  /**
   * Writes an override, with an entry of the change, and resolves to it. It is in force in this process then, and in others within a
   * second. It ends at `until`.
   *
   * @throws PoliciesError with all mistakes; SluiceError `INVALID_POLICY` where it cannot be written, with the lines to paste;
   * OverrideConflict where another version than `expected` is there; as `list` and `changes.record`
   */
  async set(override: OverrideToSet, { by, changes }: ChangeBy): Promise<SavedOverride> {
    const { client, until } = this.#check('set', override)
    const to = this.#writer('set', linesFor(override, client, until))
    const { policy, limits, reason = '', expected = 0 } = override
    const place = { policy, ...client }
    const before = await to.get(place)
    if ((before?.version ?? 0) !== expected) throw new OverrideConflict(expected, before)
    const after = { limits, until, reason }
    const change = { by, action: 'override', policy, identity: changedIdentity(client), before: stateOf(before), after }
    const version = await changes.record(change, () => to.set(place, { ...after, by }, expected))
    await this.#refresh()
    return (
      (await to.get(place)) ?? { policy, kind: client.kind, value: client.value, ...after, by, at: Date.now(), version }
    )
  }

  /**
   * Ends an override before its time, with an entry of the change. Resolves to whether there was one.
   *
   * @throws as `set`
   */
  async remove(override: OverrideOf, { by, changes }: ChangeBy): Promise<boolean> {
    const { expected, ...of } = override ?? {}
    const place = placeOf('remove', of)
    checkExpected('remove', expected)
    const to = this.#writer('remove', '')
    const before = await to.get(place)
    if (expected !== undefined && (before?.version ?? 0) !== expected) throw new OverrideConflict(expected, before)
    if (!before) return false
    const identity = changedIdentity(place)
    const change = { by, action: 'override-remove', policy: place.policy, identity, before: stateOf(before) }
    try {
      await changes.record(change, () => to.remove(place, before.version))
    } catch (error) {
      // It has ended since it was read, or another process has ended it.
      if (expected === undefined && error instanceof OverrideConflict && !error.found) return false
      throw error
    }
    await this.#refresh()
    return true
  }

  /** The connection that writes is asked first: it sees its own writes at once. */
  get #stored(): SavedOverrides | undefined {
    return this.#saving ?? this.#saved
  }

  #writer(call: string, lines: string): SavedOverrides {
    const { name } = this.#source
    if (this.#saving) return this.#saving
    const why = this.#saved
      ? 'policies.from was given no connection to write on: pass one as `save`, or change the document'
      : `${shown(name)} has no overrides beside the document, so the document has to change`
    return wrong(call, lines === '' ? why : `${why}. These lines have the same effect there:\n${lines}`)
  }

  #check(call: string, override: OverrideToSet) {
    knownOptions(`${WHERE}.${call}`, override, ['policy', 'key', 'limits', 'until', 'reason', 'expected'])
    const { policy, key, limits, until, reason = '', expected } = override
    const problems: Problem[] = []
    const client = clientOfKey(key, problems)
    const end = endOf(until, problems)
    if (
      typeof reason !== 'string' ||
      reason.length > LONGEST_REASON ||
      !reason.isWellFormed() ||
      reason.includes('\0')
    ) {
      problems.push({ path: ['reason'], message: `expected a text of up to ${LONGEST_REASON} characters` })
    }
    checkExpected(call, expected)
    const effect = client && this.#compiled().effectOf(policy, client, limits, problems)
    if (!client || !effect || problems.length > 0) throw mistakes(call, problems)
    return { client, effect, until: end }
  }

  /** It is written, whatever becomes of this: processes read it within a second. */
  async #refresh(): Promise<void> {
    if (isPropertyOf(this.#source, 'refresh')) await this.#source.refresh?.().catch(() => {})
  }
}

function checkExpected(call: string, expected: unknown): void {
  if (expected !== undefined) wholeNumber(`${WHERE}.${call}`, 'expected', expected, 0)
}

function endOf(until: unknown, problems: Problem[]): number {
  const fail = (message: string) => {
    problems.push({ path: ['until'], message })
    return 0
  }
  const isText = typeof until === 'string'
  if (isText && !(RFC_3339.test(until) && isDay(until))) {
    return fail(`expected a time with a zone that there is, such as 2030-01-01T00:00:00Z, got ${shown(until)}`)
  }
  const end = isText ? Date.parse(until) : until
  if (!Number.isSafeInteger(end)) return fail(`expected a time, got ${shown(until)}`)
  if ((end as number) <= Date.now()) return fail(`expected a time in the future, got ${shown(until)}`)
  if ((end as number) > Date.now() + LONGEST_MS) return fail(`expected a time within 100 years, got ${shown(until)}`)
  return end as number
}

/** `Date` turns the 30th of February into the 2nd of March. */
function isDay(text: string): boolean {
  const [year, month, day] = text.split(/[-Tt ]/, 3).map(Number) as [number, number, number]
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
}

/** As the store knows it: what it counts of a secret is known, and the secret is not. */
function changedIdentity({ kind, value, counted }: ClientOfOverride): string | Readonly<Record<string, string>> {
  return value === counted ? { [kind]: value } : `${kind}=${counted}`
}

/** Without the client, which the entry has by itself. */
function stateOf(override: SavedOverride | undefined): object | undefined {
  if (!override) return undefined
  const { policy: _policy, kind: _kind, value: _value, ...state } = override
  return state
}

/** @throws PoliciesError, SluiceError `INVALID_POLICY` */
function placeOf(call: string, of: Omit<OverrideOf, 'expected'>): OverridePlace & ClientOfOverride {
  knownOptions(`${WHERE}.${call}`, of, ['policy', 'key'])
  const problems: Problem[] = []
  if (typeof of.policy !== 'string') problems.push({ path: ['policy'], message: 'expected the name of a policy' })
  const client = clientOfKey(of.key, problems)
  if (!client || problems.length > 0) throw mistakes(call, problems)
  return { policy: of.policy, ...client }
}

/** The same override for a document. */
function linesFor({ policy, limits, reason }: OverrideToSet, { kind, value }: ClientOfOverride, until: number): string {
  const override = { policy, key: { [kind]: value }, limits, until: new Date(until).toISOString(), reason }
  // JSON is YAML.
  return `overrides:\n  - ${JSON.stringify(override)}\n`
}

function mistakes(call: string, problems: readonly Problem[]): PoliciesError {
  const source = `${WHERE}.${call}`
  return new PoliciesError(
    problems.map(({ path, message }) => ({
      source,
      line: undefined,
      column: undefined,
      path: textOfPath(path),
      message,
    })),
  )
}

function wrong(call: string, message: string): never {
  throw new SluiceError('INVALID_POLICY', `${WHERE}.${call}: ${message}`)
}
