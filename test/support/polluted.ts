/** Runs `use` while `Object.prototype` has a property, as a package of the application may add one. */
export async function whilePolluted<Result>(name: string, value: unknown, use: () => Result): Promise<Awaited<Result>> {
  Object.defineProperty(Object.prototype, name, { value, configurable: true })
  try {
    return await use()
  } finally {
    delete (Object.prototype as unknown as Record<string, unknown>)[name]
  }
}
