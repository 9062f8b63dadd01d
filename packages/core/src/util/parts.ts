/** Names a part that a feature adds to something of the core, such as to a policy. What has the key can read the part. */
export interface PartKey<Part> {
  readonly name: string
  /** Only a type: no key has this property. */
  readonly part?: Part
}

/** The parts that features have added to something of the core, which knows none of them. */
export class Parts {
  readonly #parts = new Map<PartKey<unknown>, unknown>()

  get<Part>(key: PartKey<Part>): Part | undefined {
    return this.#parts.get(key) as Part | undefined
  }

  set<Part>(key: PartKey<Part>, part: Part): void {
    this.#parts.set(key, part)
  }
}
