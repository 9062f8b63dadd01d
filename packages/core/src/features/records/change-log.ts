import { setImmediate } from 'node:timers/promises'
import { identityText } from '../../blocks/given-blocks.js'
import type { ChangePage, ChangesQuery, ChangeToRecord, StoreChanges } from '../../store/changes.js'
import type { ChangeEntry, ChangeState } from '../../store/entries.js'
import type { StoreEvents } from '../../store/events.js'
import { isKind, textValue } from '../../store/identity.js'
import { invalidKey, invalidPolicy } from '../../util/errors.js'
import type { Audience } from '../../util/listeners.js'
import { pause } from '../../util/pause.js'
import { ownFieldsOf } from '../../util/property-of.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import type { MaybePromise } from '../../util/when-known.js'

/** Maximum of entries that a store keeps. */
export const MAX_CHANGES_KEPT = 10_000
const MAX_PAGE = 1000
/** Entries that are read at a time where some are left out: they take a few ms at most. */
const FILTERED_AT_ONCE = 100
const LONGEST_NAME = 100
const LONGEST_STATE = 4000
/** Attempts to note how a change ended, and the pause between them: Redis may be away for a moment. */
const ATTEMPTS = 3
const PAUSE_MS = 150

/** A change as a store keeps it. */
export interface KeptChange {
  readonly number: number
  readonly at: number
  readonly state: ChangeState
  /** All else as JSON. */
  readonly text: string
}

/** A part of the entries. */
export interface ChangesKept {
  /** The newest first. */
  readonly kept: readonly KeptChange[]
  /** The number below which the next part is; undefined for the last one. */
  readonly next: number | undefined
}

/** Where the entries are. */
export interface ChangeKeeper {
  /** Adds a change that begins. Forgets the oldest beyond `MAX_CHANGES_KEPT`. */
  add(text: string): MaybePromise<KeptChange>
  /** Replaces an entry, if it is still as it was. */
  replace(before: KeptChange, after: KeptChange): MaybePromise<boolean>
  /** Those with the `max` numbers below `below`, or from the newest on. */
  page(below: number | undefined, max: number): MaybePromise<ChangesKept>
}

interface Contents {
  readonly by: string
  readonly action: string
  readonly policy?: string
  /** As text, `kind=value`. */
  readonly identity?: string
  readonly before?: unknown
  readonly after?: unknown
  readonly isErased?: true
}

/** `store.changes`, on memory and Redis. */
export class ChangeLog implements StoreChanges {
  readonly #keeper: ChangeKeeper
  readonly #listeners: Audience<StoreEvents>

  constructor(keeper: ChangeKeeper, listeners: Audience<StoreEvents>) {
    this.#keeper = keeper
    this.#listeners = listeners
  }

  async record<Result>(change: ChangeToRecord, make: () => MaybePromise<Result>): Promise<Result> {
    const contents = checkedChange(change)
    // The entry comes first: a change without an entry would be one that nobody can explain.
    const begun = await this.#keeper.add(JSON.stringify(contents))
    let state: ChangeState = 'failed'
    try {
      const result = await make()
      state = 'done'
      return result
    } finally {
      const ended = { ...begun, state }
      await this.#end(begun, state)
      if (this.#listeners.hasListeners('change')) this.#listeners.send('change', entryOf(ended, contents))
    }
  }

  async list(query: ChangesQuery = {}): Promise<ChangePage> {
    knownOptions('changes.list', query, ['cursor', 'max', 'by', 'action'])
    const { cursor, max = 100, by, action } = query
    wholeNumber('changes.list', 'max', max, 1, MAX_PAGE)
    if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) {
      invalidPolicy('changes.list', 'cursor', 'the cursor of the page before', cursor)
    }
    for (const [field, text] of Object.entries({ by, action })) {
      if (text !== undefined && typeof text !== 'string') invalidPolicy('changes.list', field, 'a text', text)
    }
    const isFiltered = by !== undefined || action !== undefined
    const entries: ChangeEntry[] = []
    let below = cursor === undefined ? undefined : Number(cursor)
    for (;;) {
      const { kept, next } = await this.#keeper.page(below, isFiltered ? FILTERED_AT_ONCE : max)
      for (const each of kept) {
        const contents = contentsOf(each.text)
        const isWanted = (by ?? contents?.by) === contents?.by && (action ?? contents?.action) === contents?.action
        if (contents && isWanted) entries.push(entryOf(each, contents))
      }
      if (!isFiltered && next !== undefined) return { entries, cursor: String(next) }
      // One more says that there is another page.
      if (entries.length > max) return { entries: entries.slice(0, max), cursor: String(entries[max - 1]?.number) }
      if (next === undefined) return { entries }
      below = next
      await setImmediate()
    }
  }

  /** Erases an identity, as text, and all that its entries say of it. */
  async erase(identity: string): Promise<void> {
    let below: number | undefined
    for (;;) {
      const { kept, next } = await this.#keeper.page(below, MAX_PAGE)
      let isWhole = true
      for (const change of kept) {
        const contents = contentsOf(change.text)
        if (contents?.identity !== identity) continue
        const { identity: _, before: _before, after: _after, ...rest } = contents
        const text = JSON.stringify({ ...rest, isErased: true })
        // It may have ended meanwhile.
        isWhole = (await this.#keeper.replace(change, { ...change, text })) && isWhole
      }
      if (!isWhole) continue
      if (next === undefined) return
      below = next
    }
  }

  /** If this fails, the entry stays one of a change that has begun. */
  async #end(begun: KeptChange, state: ChangeState): Promise<void> {
    let entry: KeptChange | undefined = begun
    for (let attempt = 1; entry && attempt <= ATTEMPTS; attempt++) {
      try {
        if (await this.#keeper.replace(entry, { ...entry, state })) return
        // Its identity was erased meanwhile.
        const { kept } = await this.#keeper.page(begun.number + 1, 1)
        entry = kept.find(({ number }) => number === begun.number)
      } catch {
        await pause(PAUSE_MS)
      }
    }
  }
}

/** @throws SluiceError `INVALID_POLICY`, `INVALID_KEY` */
function checkedChange(change: ChangeToRecord): Contents {
  const where = 'changes.record'
  knownOptions(where, change, ['by', 'action', 'policy', 'identity', 'before', 'after'])
  const { by, action, policy, identity, before, after } = change
  if (typeof by !== 'string' || by.length > LONGEST_NAME) {
    invalidPolicy(where, 'by', `a name of up to ${LONGEST_NAME} characters`, by)
  }
  if (typeof action !== 'string' || !/^[a-z0-9-]{1,40}$/.test(action)) {
    invalidPolicy(where, 'action', '1 to 40 lower-case letters, digits and "-"', action)
  }
  if (policy !== undefined && (typeof policy !== 'string' || policy === '' || policy.length > 2 * LONGEST_NAME)) {
    invalidPolicy(where, 'policy', 'the name of a policy', policy)
  }
  return {
    by,
    action,
    ...(policy !== undefined && { policy }),
    ...(identity !== undefined && { identity: countedText(where, identity) }),
    ...(before !== undefined && { before: boundedState(where, 'before', before) }),
    ...(after !== undefined && { after: boundedState(where, 'after', after) }),
  }
}

function countedText(where: string, identity: NonNullable<ChangeToRecord['identity']>): string {
  if (typeof identity !== 'string') return identityText(where, identity)
  const { kind, value } = textValue(identity)
  if (!identity.includes('=') || !isKind(kind) || value === '')
    return invalidKey(where, 'an identity such as ip=192.0.2.7', identity)
  return identity
}

function boundedState(where: string, field: string, state: unknown): unknown {
  let text: string | undefined
  try {
    text = JSON.stringify(state)
  } catch {
    // As below.
  }
  if (text === undefined) return invalidPolicy(where, field, 'plain data', state)
  return text.length > LONGEST_STATE ? { omitted: text.length } : state
}

/** Undefined for a text that is not ours. */
function contentsOf(text: string): Contents | undefined {
  try {
    const contents = ownFieldsOf(JSON.parse(text) as Contents)
    const { by, action, policy = '', identity = '' } = contents
    return [by, action, policy, identity].every((field) => typeof field === 'string') ? contents : undefined
  } catch {
    return undefined
  }
}

function entryOf({ number, at, state }: KeptChange, contents: Contents): ChangeEntry {
  const { identity, ...rest } = ownFieldsOf(contents)
  return { ...rest, number, at, ...(identity !== undefined && textValue(identity)), state }
}
