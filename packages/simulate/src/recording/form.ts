/** The version of the form that this package writes, and the newest that it reads. */
export const VERSION = 1
/** The first line of each file begins so. */
export const START = '#sluice-recording '
/** A line with the number of records that are missing before it. */
export const MISSING = '#missing '

/** What the first line of a file has behind `START`, as JSON. */
export interface RecordingHead {
  readonly version: number
  /** Recordings by one secret have the same. */
  readonly secret: string
  /** The recorded share of all networks, above 0 and up to 1. */
  readonly share: number
}

/** A request, as a line of JSON. */
export interface RecordedRequest {
  /** When it was decided on, by the clock of its store, in ms since the epoch. The decimals count the requests of one ms. */
  readonly time: number
  /** From its admission to the end of its response, in ms. */
  readonly duration: number | undefined
  readonly method: string
  readonly host: string | undefined
  /** Without the query. */
  readonly path: string
  /** The pattern of its route. */
  readonly route: string | undefined
  /** 499 where the client left. Undefined where others send the response. */
  readonly status: number | undefined
  /** `admitted`, or the reason of the refusal. */
  readonly outcome: string
  /** The reason for which a policy in report mode would have refused it. */
  readonly reported: string | undefined
  /** Who decided in place of the store: a list, or this process while the store was away. */
  readonly by: 'list' | 'process' | undefined
  /**
   * HMACs of the client's address and of its networks, the largest first: of IPv4 the /24 and the address, of IPv6 the /48, the
   * /64 and the address.
   */
  readonly ip: readonly string[] | undefined
  /** HMACs of its other identities, by kind. */
  readonly ids: Readonly<Record<string, string>> | undefined
  /** The tier of its client, by the name of each policy that has tiers. */
  readonly tiers: Readonly<Record<string, string>> | undefined
  /** By the name of each policy: units by their names, where a request costs more than one of `requests`. */
  readonly costs: Readonly<Record<string, Readonly<Record<string, number>>>> | undefined
}
