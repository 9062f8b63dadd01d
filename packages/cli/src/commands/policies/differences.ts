import { type ReadDocument, readDocument } from '@sluice/policies'

/** What is different between two documents, a line for each policy and override: `+` added, `-` removed, `~` changed. */
export function differencesOf(before: string | undefined, after: string): string[] {
  const [from, to] = [entriesOf(before), entriesOf(after)]
  const lines: string[] = []
  for (const [name, text] of to) {
    const other = from.get(name)
    if (other === undefined) lines.push(`+ ${name}`)
    else if (other !== text) lines.push(`~ ${name}`)
  }
  for (const name of from.keys()) if (!to.has(name)) lines.push(`- ${name}`)
  return lines
}

/** Policies and overrides by what people call them. Values of overrides are not shown: they may be secrets. */
function entriesOf(text: string | undefined): ReadonlyMap<string, string> {
  const entries = new Map<string, string>()
  if (text === undefined) return entries
  const { policies = {}, overrides = [], carry = 'keep' }: ReadDocument = readDocument(text)
  if (carry !== 'keep') entries.set(`carry: ${carry}`, '')
  for (const [name, policy] of Object.entries(policies)) entries.set(`policy ${name}`, JSON.stringify(policy))
  const byPolicy = new Map<string, string[]>()
  for (const override of overrides) {
    const all = byPolicy.get(override.policy) ?? []
    byPolicy.set(override.policy, [...all, JSON.stringify(override)])
  }
  for (const [policy, all] of byPolicy) {
    entries.set(`overrides of ${policy} (${all.length})`, all.sort().join('\n'))
  }
  return entries
}
