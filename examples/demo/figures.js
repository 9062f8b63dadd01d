// @ts-check
import { startCounting } from '@sluice/core/metrics'

/** The pause between two lines. */
const EVERY_MS = 1000

/** Prints what this process decided in each second. Does not keep the process alive. */
export function printFigures() {
  const counting = startCounting()
  let before = sums(counting.read())
  const print = () => {
    const now = sums(counting.read())
    const { decisions, refused, alone } = now
    console.log(
      `${decisions - before.decisions} decisions, ${refused - before.refused} refused, ${alone - before.alone} alone, ` +
        `${now.waiting} waiting`,
    )
    before = now
  }
  setInterval(print, EVERY_MS).unref()
}

/** @param {import('@sluice/core/metrics').Snapshot} snapshot */
function sums({ decisions: rows, queues }) {
  const count = (/** @type {(row: typeof rows[number]) => boolean} */ fits) =>
    rows.filter(fits).reduce((sum, row) => sum + row.count, 0)
  return {
    decisions: count(() => true),
    refused: count(({ outcome, reported }) => outcome !== 'admitted' && !reported),
    alone: count(({ source }) => source === 'local' || source === 'mirror'),
    waiting: queues.reduce((sum, { waiting }) => sum + waiting, 0),
  }
}
