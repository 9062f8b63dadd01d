// The limits of the processes in the chaos tests; the judge applies the same numbers.

/** Low enough that every window is filled, by each key of a cluster too. */
export const LIMIT = 50
export const WINDOW_MS = 500
export const BURST = 20
export const LEASE = { size: 10, ttl: 100 }
/** Never reached: the count in Redis is compared with the admissions. */
export const LEDGER = 1e9
export const PERMITS = 5
/** The time after which the permit of a dead holder is free. */
export const PERMITS_TTL_MS = 2000

/** The deadline of a decision in ms. One with a lease may wait for several, as it may request a lease again. */
export const TIMEOUT_MS = 100
/** @type {Record<string, number>} */
export const DEADLINES_MS = {
  log: TIMEOUT_MS,
  bucket: TIMEOUT_MS,
  leased: 3 * TIMEOUT_MS,
  ledger: TIMEOUT_MS,
  permits: TIMEOUT_MS,
}

/** The pause between two rounds of requests of a process, in ms. */
export const ASKED_EVERY_MS = 5
