/** A request that is to be decided on, as a gateway or a caller describes it. */
export interface DescribedRequest {
  readonly method: string
  /** The path with its query. */
  readonly target: string
  /** The client's address; undefined if the caller gave none. */
  readonly ip: string | undefined
  /** A header of the client by its lower-case name; `host` is the one that the client asked for. */
  readonly header: (name: string) => string | undefined
  /** The keys that callers of `json` send, by the names that documents use. */
  readonly keys?: Readonly<Record<string, string | number>>
  /** The tiers that the client is in, by the names that documents use. */
  readonly tiers?: Readonly<Record<string, string>>
  /** Units that it takes. */
  readonly cost?: number | Readonly<Record<string, number>>
}
