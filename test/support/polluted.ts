/** Gives `Object.prototype` properties, as a naive deep merge of `{ "__proto__": { … } }` does. Returns what takes them away. */
export function polluted(names: readonly string[], value: unknown): () => void {
  const before = names.map((name) => Object.getOwnPropertyDescriptor(Object.prototype, name))
  const polluting = { __proto__: null, value, configurable: true, enumerable: true, writable: true }
  for (const name of names) Object.defineProperty(Object.prototype, name, polluting)
  return () => {
    for (const name of names) delete (Object.prototype as unknown as Record<string, unknown>)[name]
    for (const [i, name] of names.entries()) {
      const descriptor = before[i]
      if (descriptor) Object.defineProperty(Object.prototype, name, descriptor)
    }
  }
}

/** Runs `use` while `Object.prototype` has a property, as a package of the application may add one. */
export async function whilePolluted<Result>(name: string, value: unknown, use: () => Result): Promise<Awaited<Result>> {
  const clean = polluted([name], value)
  try {
    return await use()
  } finally {
    clean()
  }
}
