/** The object with another method. */
export function withMethod<T extends object>(object: T, method: keyof T & string, replacement: unknown): T {
  return new Proxy(object, {
    get(target, name) {
      if (name === method) return replacement
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
