/** The names of functions that a document takes from code. */
export interface NamesOfFunctions {
  readonly keys: ReadonlySet<string>
  readonly tiers: ReadonlySet<string>
  readonly costs: ReadonlySet<string>
}

export function namesIn(document: unknown): NamesOfFunctions {
  const names = { keys: new Set<string>(), tiers: new Set<string>(), costs: new Set<string>() }
  const visit = (value: unknown, field: string): void => {
    if (typeof value === 'string') {
      if (field === 'key') names.keys.add(value)
      else if (field === 'tier') names.tiers.add(value)
      else if (field === 'cost') names.costs.add(value)
    } else if (Array.isArray(value)) for (const item of value) visit(item, field)
    else if (typeof value === 'object' && value !== null) {
      // Costs by unit; a policy of this name has lists in it.
      const areCosts = field === 'cost' && Object.values(value).every((item) => typeof item !== 'object')
      for (const [name, item] of Object.entries(value)) {
        if (areCosts) visit(item, field)
        else if (field === 'key' || field === 'prefix') names.keys.add(name)
        else visit(item, name)
      }
    }
  }
  visit(document, '')
  return names
}
