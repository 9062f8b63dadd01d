/**
 * Runs contestants in turns, A B C A B C, so that other load of the machine affects all equally. A first round warms up
 * and is not counted.
 *
 * @template {Record<string, number>} Figures
 * @template Contestant
 * @param {readonly Contestant[]} contestants
 * @param {number} rounds
 * @param {(contestant: Contestant, isWarmUp: boolean) => Promise<Figures>} turn
 * @returns {Promise<Map<Contestant, { [Figure in keyof Figures]: number[] }>>} the figures of each round, in order
 */
export async function takeTurns(contestants, rounds, turn) {
  /** @type {Map<Contestant, Figures[]>} */
  const taken = new Map(contestants.map((contestant) => [contestant, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [contestant, figures] of taken) {
      const result = await turn(contestant, round === 0)
      if (round > 0) figures.push(result)
    }
  }
  return new Map([...taken].map(([contestant, figures]) => [contestant, columns(figures)]))
}

/**
 * @template {Record<string, number>} Figures
 * @param {Figures[]} rows
 */
function columns(rows) {
  const names = Object.keys(rows[0] ?? {})
  const entries = names.map((name) => [name, rows.map((row) => row[name])])
  return /** @type {{ [Figure in keyof Figures]: number[] }} */ (Object.fromEntries(entries))
}
