// Medians and quartiles: other programs on the machine affect single rounds, but not these.

/**
 * @typedef {object} Spread
 * @property {number} median
 * @property {number} low first quartile
 * @property {number} high third quartile
 */

/**
 * @param {readonly number[]} values at least one
 * @returns {Spread}
 */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

/** @param {readonly number[]} values */
export const median = (values) => spread(values).median

/**
 * The ratio of `values` to `others`, round by round, as a slow round slows both.
 *
 * @param {readonly number[]} values
 * @param {readonly number[]} others measured in the same rounds
 */
export function ratio(values, others) {
  return spread(values.map((value, round) => value / (others[round] ?? Number.NaN)))
}

/** @param {Spread} share @returns {Spread} */
export const percent = ({ median, low, high }) => ({ median: median * 100, low: low * 100, high: high * 100 })

/**
 * @param {readonly number[]} sorted
 * @param {number} share
 */
function quantile(sorted, share) {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

/**
 * The interval that holds the true median with a confidence of at least 95 %, whatever the distribution: between two
 * order statistics, by the binomial distribution. With fewer than six values, it reaches from the least to the largest.
 *
 * @param {readonly number[]} values
 */
export function medianInterval(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const count = sorted.length
  // The chance that at most `at` of the values lie below the median; above it as many.
  let chance = 0.5 ** count
  let term = chance
  let at = 0
  while (chance + (term * (count - at)) / (at + 1) <= 0.025) {
    term = (term * (count - at)) / (at + 1)
    chance += term
    at++
  }
  return { low: sorted[at] ?? Number.NaN, high: sorted[count - 1 - at] ?? Number.NaN }
}
