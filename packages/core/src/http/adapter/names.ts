/** A text as the name of a policy. */
export function policyName(text: string, longest = 64): string {
  return text.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, longest)
}

/** A name for a policy that is none of `taken`: the text, with a number where it needs one. */
export function freeName(text: string, taken: ReadonlySet<string>): string {
  const base = policyName(text, 56)
  let free = base
  for (let n = 2; taken.has(free); n++) free = `${base}-${n}`
  return free
}
