let keys = 0

/** A key that no other test has used, in this process or another. */
export function freshKey(): string {
  return `key-${process.pid}-${Date.now().toString(36)}-${keys++}`
}
