/** A document as it was saved. */
export interface SavedDocument {
  /** 1 for the first, and one more each time. */
  readonly version: number
  /** YAML or JSON. */
  readonly text: string
  /** The name of the author; empty where none was given. */
  readonly by: string
  /** When, in ms since 1970, by the clock of Redis or PostgreSQL. */
  readonly at: number
}

/** A different text for each version. */
export function markOf({ version, at }: Pick<SavedDocument, 'version' | 'at'>): string {
  return `${version} ${at}`
}

/** Versions that a history lists. */
export const MAX_LISTED = 20

/** The versions of one document. */
export interface SavedDocuments {
  /** The number of the version in force; 0 where none was saved. */
  version(): Promise<number>
  /** Undefined if none was saved. */
  newest(): Promise<SavedDocument | undefined>
  /** The last twenty, newest first. */
  history(): Promise<readonly SavedDocument[]>
  /**
   * Saves a version on top of the expected one in force, and resolves to its number.
   *
   * @throws VersionConflict where another one is
   */
  save(text: string, expected: number, by: string): Promise<number>
}

/** Another author has saved a version meanwhile. */
export class VersionConflict extends Error {
  /** The version in force; 0 for none. */
  readonly found: { readonly version: number }

  constructor(expected: number, version: number) {
    super(`expected version ${expected} to be in force, and version ${version} is: another version was saved meanwhile`)
    this.found = { version }
  }
}
