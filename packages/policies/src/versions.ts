import { SluiceError } from '@sluice/core'
import { knownOptions, wholeNumber } from '@sluice/core/internal'
import type { CarriedLimit } from './compile/carried.js'
import { areShort, compareApart } from './document/check-apart.js'
import type { ChangeBy } from './overrides.js'
import type { PoliciesError } from './problems/policies-error.js'
import { type SavedDocument, type SavedDocuments, VersionConflict } from './sources/saved-documents.js'
import type { PoliciesSource } from './sources/source.js'

/** A version of a document. Plain data, as JSON holds it. */
export interface DocumentVersion {
  /** 1 for the first, and one more each time. */
  readonly version: number
  /** Who saved it; empty where that is not known. */
  readonly by: string
  /** When, in ms since 1970, by the clock of Redis or PostgreSQL. */
  readonly at: number
}

/** A version with its differences from the one before. */
export interface ListedVersion extends DocumentVersion {
  /** Lines as of `sluice history`. Absent if one of the two cannot be read, is no longer kept, or is too long to compare. */
  readonly differences?: readonly string[]
}

/** The effect of a rollback. Plain data, as JSON holds it. */
export interface PlannedRollback extends DocumentVersion {
  /** The version to pass as `expected`: the one that is saved as the newest. */
  readonly expected: number
  /** Lines as of `sluice plan`. Empty where nothing but the spelling differs; absent as in `list`. */
  readonly differences?: readonly string[]
  /** Whether used units still count, for each limit that changes. Absent for documents above 16,000 characters together. */
  readonly carried?: readonly CarriedLimit[]
  /** Why this process would not take the version. Hides the same as `differences`. */
  readonly error?: string
  /** Whether `rollback` can write it: `policies.from` was given `save`. */
  readonly canSave: boolean
}

/** The version to put in force again. */
export interface RollbackTo {
  readonly version: number
  /** The newest version, as `list` and `plan` report it. */
  readonly expected: number
}

/** Functions of the policies whose versions these are. */
interface Parts {
  /** @throws PoliciesError where the policies would not take this text */
  check(document: SavedDocument): Promise<void>
  carried(before: string, after: string): readonly CarriedLimit[]
  /** Takes the newest version. */
  reload(): Promise<void>
}

const WHERE = 'versions'
/** Characters of the texts that one list compares. */
const MAX_COMPARED = 2_097_152

/** The last twenty versions of a document in Redis or PostgreSQL. */
export class PolicyVersions {
  readonly #saved: NonNullable<PoliciesSource['documents']>
  readonly #parts: Parts

  /** @internal */
  constructor(saved: NonNullable<PoliciesSource['documents']>, parts: Parts) {
    this.#saved = saved
    this.#parts = parts
  }

  /** Whether `rollback` can write: `policies.from` was given `save`. */
  get canSave(): boolean {
    return this.#saved.writer !== undefined
  }

  /**
   * The last twenty versions, newest first: who saved them, when, and the differences of each from the one before.
   *
   * @throws PostgresFailure, or the error of the client of Redis
   */
  async list(): Promise<readonly ListedVersion[]> {
    const all = await this.#documents.history()
    const compared = comparable(all)
    const differences = await compareApart({ texts: compared.map(({ text }) => text) })
    return all.map((saved, i) => {
      // The one before the oldest is known for the first version alone: there was none.
      const isKnown = i + 1 < compared.length || saved.version === 1
      const lines = isKnown ? differences[i] : undefined
      return { ...shownOf(saved), ...(lines && { differences: lines }) }
    })
  }

  /**
   * The effect of a rollback to a version. Changes nothing. Undefined for a version that is not kept.
   *
   * @throws SluiceError `INVALID_POLICY`; as `list`
   */
  async plan(version: number): Promise<PlannedRollback | undefined> {
    wholeNumber(`${WHERE}.plan`, 'version', version, 1)
    const all = await this.#documents.history()
    const [newest, found] = [all[0], all.find((each) => each.version === version)]
    if (!newest || !found) return undefined
    const texts = [found.text, newest.text]
    const [differences] = await compareApart({ texts })
    const error = await this.#parts.check(found).then(
      () => undefined,
      (problem: PoliciesError) => problem.messageWithoutClients,
    )
    return {
      ...shownOf(found),
      expected: newest.version,
      ...(differences && { differences }),
      ...(areShort(texts) && { carried: this.#parts.carried(newest.text, found.text) }),
      ...(error !== undefined && { error }),
      canSave: this.canSave,
    }
  }

  /**
   * Saves an earlier version as the newest, with an entry of the change, and resolves to its number. It is in force in this process
   * then, and in others within a second. Where the newest has the same text, nothing is changed, and its number is the result.
   * Undefined for a version that is not kept.
   *
   * @throws VersionConflict where another version than `expected` is the newest; PoliciesError where this process would not take the
   * version; SluiceError `INVALID_POLICY` where it cannot be written; as `list` and `changes.record`
   */
  async rollback(to: RollbackTo, { by, changes }: ChangeBy): Promise<number | undefined> {
    const where = `${WHERE}.rollback`
    knownOptions(where, to, ['version', 'expected'])
    const { version, expected } = to
    wholeNumber(where, 'version', version, 1)
    wholeNumber(where, 'expected', expected, 1)
    const { name, writer } = this.#saved
    if (!writer) {
      const why = 'policies.from was given no connection to write on: pass one as `save`, or use sluice rollback'
      throw new SluiceError('INVALID_POLICY', `${where}: ${why}`)
    }
    const all = await writer.history()
    const newest = all[0]
    if (newest?.version !== expected) throw new VersionConflict(expected, newest?.version ?? 0)
    const found = all.find((each) => each.version === version)
    if (!found) return undefined
    if (found.text === newest.text) return expected
    await this.#parts.check(found)
    const change = {
      by,
      action: 'rollback',
      before: { document: name, version: expected },
      after: { document: name, version: expected + 1, sameAs: version },
    }
    const next = await changes.record(change, () => writer.save(found.text, expected, by))
    // It is written, whatever becomes of this: processes read it within a second.
    await this.#parts.reload().catch(() => {})
    return next
  }

  /** The connection that writes is asked first: it sees its own writes at once. */
  get #documents(): SavedDocuments {
    return this.#saved.writer ?? this.#saved.reader
  }
}

/** The newest versions, as far as their texts are not too long together. */
function comparable(all: readonly SavedDocument[]): readonly SavedDocument[] {
  let length = 0
  const end = all.findIndex(({ text }) => {
    length += text.length
    return length > MAX_COMPARED
  })
  return end < 0 ? all : all.slice(0, end)
}

function shownOf({ version, by, at }: SavedDocument): DocumentVersion {
  return { version, by, at }
}
