import { UsageError } from '../program/usage-error.js'

/** What the store says is wrong with an argument is the command line's fault. */
export async function usable<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    throw code === 'INVALID_KEY' || code === 'INVALID_POLICY' ? new UsageError(message) : error
  }
}
