// What the processes of the chaos tests are held to; the judge goes by the same numbers.

/** So tight that every window is filled, by each of a cluster's keys too. */
export const LIMIT = 50
export const WINDOW_MS = 500
export const BURST = 20
export const LEASE = { size: 10, ttl: 100 }
/** Never full: what Redis counts is compared with what was admitted. */
export const LEDGER = 1e9
export const PERMITS = 5
/** A permit whose holder died is free so many ms later. */
export const PERMITS_TTL_MS = 2000

/** Deadline of a decision in ms, and how often it may be waited for: a lease may be asked for anew. */
export const TIMEOUT_MS = 100
/** @type {Record<string, number>} */
export const DEADLINES_MS = {
  log: TIMEOUT_MS,
  bucket: TIMEOUT_MS,
  leased: 3 * TIMEOUT_MS,
  ledger: TIMEOUT_MS,
  permits: TIMEOUT_MS,
}

/** Between two rounds of requests of a process, in ms. */
export const ASKED_EVERY_MS = 5
