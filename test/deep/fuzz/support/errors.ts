import { inspect } from 'node:util'
import { SluiceError, type SluiceErrorCode } from '@sluice/core'

/**
 * Calls a function that may fail only with a SluiceError of one of these codes. Returns the message of the error, or an
 * empty text if there was none.
 */
export async function expectSaid(codes: readonly SluiceErrorCode[], call: () => unknown): Promise<string> {
  try {
    await call()
    return ''
  } catch (error) {
    if (!(error instanceof SluiceError)) throw new Error('no SluiceError', { cause: error })
    must(codes.includes(error.code), `one of ${codes}`, error)
    must(error.message.length < 800, 'something to read, whatever came', error.message.length)
    return error.message
  }
}

/** An assertion that costs nothing while it holds: there are millions of them. */
export function must(holds: boolean, what: string, seen?: unknown): asserts holds {
  if (!holds) throw new Error(`expected ${what}${seen === undefined ? '' : `; saw ${inspect(seen)}`}`)
}
