/**
 * A property of an object or a function that users make: its own, or that of a class. Never one of `Object.prototype`, which any
 * package may have added.
 */
export function propertyOf<Given extends object, Name extends keyof Given & string>(
  given: Given,
  name: Name,
): Given[Name] | undefined {
  // Nearly always absent there: one look-up in `given` in place of two.
  return !(name in Object.prototype) || isPropertyOf(given, name) ? given[name] : undefined
}

/** Whether there is such a property. */
export function isPropertyOf(given: object, name: string): boolean {
  if (!(name in given)) return false
  if (!(name in Object.prototype)) return true
  let holder: object | null = given
  while (holder !== null && holder !== Object.prototype) {
    if (Object.hasOwn(holder, name)) return true
    holder = Object.getPrototypeOf(holder)
  }
  return false
}

/** A property of each of several objects, of those that have it. */
export function propertiesOf<Given extends object, Name extends keyof Given & string>(
  all: readonly Given[],
  name: Name,
): readonly NonNullable<Given[Name]>[] {
  return all.flatMap((each): NonNullable<Given[Name]>[] => {
    const value = propertyOf(each, name)
    return value === undefined || value === null ? [] : [value]
  })
}

/** Properties of these names alone, read once. */
export function fieldsOf<Given extends object>(given: Given, names: readonly string[]): Given {
  const fields = Object.create(null)
  for (const name of names) fields[name] = given[name as keyof Given]
  return fields
}

/** The fields that an object has itself, to read those that it may lack. */
export function ownFieldsOf<Given extends object>(given: Given): Given {
  return { __proto__: null, ...given } as Given
}

/** Whether an object has a property of its own: of several forms, the one that has it. */
export function hasOwn<Given extends object, Name extends string>(
  given: Given,
  name: Name,
): given is Extract<Given, Record<Name, unknown>> {
  return Object.hasOwn(given, name)
}
