import { UsageError } from '../program/usage-error.js'

/** An argument that the store rejects is a fault of the command line. */
export async function usable<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    throw code === 'INVALID_KEY' || code === 'INVALID_POLICY' ? new UsageError(message) : error
  }
}
