import { setImmediate } from 'node:timers/promises'

/** The reasons of rejections that nobody handled while something ran: each would have ended the process. */
export async function unhandledDuring(run: () => unknown): Promise<unknown[]> {
  const reasons: unknown[] = []
  const listen = (reason: unknown) => void reasons.push(reason)
  process.on('unhandledRejection', listen)
  try {
    await run()
    // They are told of once nothing is left to run at once.
    await setImmediate()
  } finally {
    process.off('unhandledRejection', listen)
  }
  return reasons
}

/** The warnings of this project's while something ran. */
export async function warningsDuring(run: () => unknown): Promise<Error[]> {
  const warnings: Error[] = []
  const listen = (warning: Error) => {
    if (warning.name === 'SluiceWarning') warnings.push(warning)
  }
  process.on('warning', listen)
  try {
    await run()
    await setImmediate()
  } finally {
    process.off('warning', listen)
  }
  return warnings
}
