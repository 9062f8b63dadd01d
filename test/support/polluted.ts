/** Properties of `Object.prototype`, as a naive deep merge of `{ "__proto__": { … } }` gives it. */
export class Pollution {
  readonly #describe: (name: string) => PropertyDescriptor
  /** What the prototype had by each name that it has now. */
  readonly #before = new Map<string, PropertyDescriptor | undefined>()

  constructor(describe: (name: string) => PropertyDescriptor) {
    this.#describe = describe
  }

  /** Of one value by any name. */
  static by(value: unknown): Pollution {
    return new Pollution(() => descriptor({ value, writable: true, enumerable: true }))
  }

  /** Of getters that nobody notices, which collect the places where names are read. */
  static ofReads(): { readonly pollution: Pollution; readonly reads: Map<string, Set<string>> } {
    const reads = new Map<string, Set<string>>()
    const pollution = new Pollution((name) => {
      const present = Object.getOwnPropertyDescriptor(Object.prototype, name)
      if (present) return descriptor(present)
      const get = () => {
        const places = reads.get(name) ?? new Set()
        // The first line is the error, and the second this getter.
        places.add(`${new Error().stack?.split('\n')[2]?.trim()}`)
        reads.set(name, places)
      }
      // As a property that an object does not have yet.
      const set = function (this: object, value: unknown) {
        Object.defineProperty(this, name, descriptor({ value, writable: true, enumerable: true }))
      }
      return descriptor({ get, set, enumerable: false })
    })
    return { pollution, reads }
  }

  /** Adds and removes properties until there are these. Each costs V8 what it knows of prototypes, so few are changed. */
  become(names: readonly string[]): void {
    const wanted = new Set(names)
    for (const [name, before] of this.#before) {
      if (wanted.has(name)) continue
      delete (Object.prototype as unknown as Record<string, unknown>)[name]
      if (before) Object.defineProperty(Object.prototype, name, before)
      this.#before.delete(name)
    }
    for (const name of wanted) {
      if (this.#before.has(name)) continue
      const before = Object.getOwnPropertyDescriptor(Object.prototype, name)
      this.#before.set(name, before && descriptor(before))
      Object.defineProperty(Object.prototype, name, this.#describe(name))
    }
  }
}

/** Without a prototype that may be polluted itself. */
function descriptor(fields: PropertyDescriptor): PropertyDescriptor {
  return { __proto__: null, configurable: true, ...fields } as PropertyDescriptor
}

/** Runs `use` while `Object.prototype` has a property, as a package of the application may add one. */
export async function whilePolluted<Result>(name: string, value: unknown, use: () => Result): Promise<Awaited<Result>> {
  const pollution = Pollution.by(value)
  pollution.become([name])
  try {
    return await use()
  } finally {
    pollution.become([])
  }
}
