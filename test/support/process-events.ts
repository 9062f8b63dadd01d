import { setImmediate } from 'node:timers/promises'

/** The reasons of unhandled rejections while something ran: each would have ended the process. */
export function unhandledDuring(run: () => unknown): Promise<unknown[]> {
  return toldDuring('unhandledRejection', run)
}

/** What would have ended the process while something ran: uncaught errors, and such rejections. */
export async function failuresDuring(run: () => unknown): Promise<unknown[]> {
  const rejections: unknown[] = []
  const errors = await toldDuring('uncaughtException', async () => {
    rejections.push(...(await unhandledDuring(run)))
  })
  return [...errors, ...rejections]
}

/**
 * The warnings of this project's while something ran, but the one about the limiters of the whole process: files share theirs, so
 * whichever test makes the hundredth would be told.
 */
export async function warningsDuring(run: () => unknown): Promise<Error[]> {
  const warnings = await allWarningsDuring(run)
  return warnings.filter((warning) => (warning as { code?: unknown }).code !== 'SLUICE_MANY_LIMITERS')
}

/** The warnings of this project's while something ran, for files with a worker of their own. */
export async function allWarningsDuring(run: () => unknown): Promise<Error[]> {
  const warnings = (await toldDuring('warning', run)) as Error[]
  return warnings.filter(({ name }) => name === 'SluiceWarning')
}

/** What the listeners of an event of the process were told while something ran. */
async function toldDuring(event: string, run: () => unknown): Promise<unknown[]> {
  const told: unknown[] = []
  const listen = (what: unknown) => void told.push(what)
  process.on(event, listen)
  try {
    await run()
    // They are told once nothing is left to run at once.
    await setImmediate()
  } finally {
    process.off(event, listen)
  }
  return told
}
