/** An identity as bodies have it. */
export interface GivenIdentity {
  readonly kind: string
  readonly value: string | readonly string[]
  readonly counted?: boolean
}

/** An identity that a console shows, as limits count it. */
export interface NamedIdentity {
  /** Such as `user` or `ip`. */
  readonly kind: string
  /** The normalised value, up to 256 characters; of an address also its network, such as `192.0.2.0/24`. */
  readonly value: string
}

/** The name of an identity for people; undefined for none. */
export type NameOf = (identity: NamedIdentity) => string | undefined | Promise<string | undefined>
