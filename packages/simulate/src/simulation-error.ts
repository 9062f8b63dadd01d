/** Options, documents or logs are wrong. The message says what to write instead. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError'
}
