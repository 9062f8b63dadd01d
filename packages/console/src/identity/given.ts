/** An identity as bodies have it. */
export interface GivenIdentity {
  readonly kind: string
  readonly value: string | readonly string[]
  readonly counted?: boolean
}
