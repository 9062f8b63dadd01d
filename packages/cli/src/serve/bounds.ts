/** Bounds on requests to a decider. All of them hold before a token is looked at. */

/** Bytes of a request's headers; gateways pass on what their clients send, cookies among it. */
export const MAX_HEADER_BYTES = 65_536
/** Lines of a request's headers. Node would silently drop lines beyond its own bound. */
export const MAX_HEADERS = 500
/** Bytes of a body. */
export const MAX_BODY_BYTES = 262_144
/** Requests described in one body. */
export const MAX_IN_BATCH = 100
/** The time for requests of one body before others have their turn, in ms. */
export const SLICE_MS = 0.5
/** Connections at a time, unless `--max-connections` says otherwise. */
export const MAX_CONNECTIONS = 10_000
/** The time for a client to send its headers, and its whole request, in ms. */
export const HEADERS_WITHIN_MS = 5000
export const REQUEST_WITHIN_MS = 10_000
/** The interval at which Node checks for requests that take longer, in ms. */
export const LOOK_EVERY_MS = 1000
/** The idle time of a connection between requests, in ms: longer than that of gateways, so that they close first. */
export const IDLE_MS = 75_000
/** The time that a connection may be without traffic while a request is under way, in ms. */
export const SILENT_MS = 30_000
