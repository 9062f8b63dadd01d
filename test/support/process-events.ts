import { setImmediate } from 'node:timers/promises'

/** The reasons of unhandled rejections while something ran: each would have ended the process. */
export function unhandledDuring(run: () => unknown): Promise<unknown[]> {
  return receivedDuring('unhandledRejection', run)
}

/** The failures that would have ended the process while something ran: uncaught errors, and unhandled rejections. */
export async function failuresDuring(run: () => unknown): Promise<unknown[]> {
  const rejections: unknown[] = []
  const errors = await receivedDuring('uncaughtException', async () => {
    rejections.push(...(await unhandledDuring(run)))
  })
  return [...errors, ...rejections]
}

/**
 * The warnings of this project while something ran, except SLUICE_MANY_LIMITERS. Files share a process, so any test
 * could make its hundredth limiter.
 */
export async function warningsDuring(run: () => unknown): Promise<Error[]> {
  const warnings = await allWarningsDuring(run)
  return warnings.filter((warning) => (warning as { code?: unknown }).code !== 'SLUICE_MANY_LIMITERS')
}

/** The warnings of this project while something ran, for files with their own worker, or tests that choose among them. */
export async function allWarningsDuring(run: () => unknown): Promise<Error[]> {
  const warnings = (await receivedDuring('warning', run)) as Error[]
  return warnings.filter(({ name }) => name === 'SluiceWarning')
}

/** The values that listeners of a process event received while something ran. */
async function receivedDuring(event: string, run: () => unknown): Promise<unknown[]> {
  const received: unknown[] = []
  const listen = (value: unknown) => void received.push(value)
  process.on(event, listen)
  try {
    await run()
    // Events arrive once nothing is left to run at once.
    await setImmediate()
  } finally {
    process.off(event, listen)
  }
  return received
}
