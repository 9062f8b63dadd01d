/** A script for Redis, and the SHA-1 of its source by which servers know it. */
export interface StoreScript {
  readonly sha1: string
  readonly source: string
}

/** Whose key a script reads and writes: all keys of an identity are in one slot, and `forget` erases them. */
export interface ScriptKey {
  readonly identity: string
  readonly policy: string
  /** The end of the key. */
  readonly part: string
}

/** The symbol of the part of a store that runs scripts of our own packages: `store[KEYED_SCRIPTS]`. */
export const KEYED_SCRIPTS: unique symbol = Symbol.for('@sluice/core: keyed scripts')

/** States that our other packages keep in a store that processes share. */
export interface KeyedScripts {
  /**
   * Runs a script on one key. Its first argument is the time: '' for Redis's own.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`, after which it may have run
   */
  run(script: StoreScript, key: ScriptKey, args: readonly string[]): Promise<unknown>
}
