import { cannotWrite, checkOwnFile, replaceFile } from '@sluice/core/internal'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Writes a report that only its owner can read (0600), whole or not at all. An earlier report is replaced, as `checkReportFile`
 * allows. A signal removes the half-written file, then ends the process.
 *
 * @param inputs the files that the report was made of
 * @throws Error with one sentence for the user, where the file cannot be written; what was there stays
 */
export async function writeReport(file: string, page: string, inputs: readonly string[] = []): Promise<void> {
  await checkReportFile(file, inputs)
  const interruption = new AbortController()
  const interrupt = (signal: NodeJS.Signals) => interruption.abort(signal)
  for (const signal of SIGNALS) process.on(signal, interrupt)
  try {
    await replaceFile(file, page, { signal: interruption.signal })
  } catch (error) {
    if (!interruption.signal.aborted) throw cannotWrite(file, error)
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, interrupt)
  }
  if (interruption.signal.aborted) process.kill(process.pid, interruption.signal.reason)
}

/**
 * Checks that a report may be written: to a new file, or in place of an earlier report that is none of the inputs.
 *
 * @throws Error with one sentence for the user
 */
export async function checkReportFile(file: string, inputs: readonly string[]): Promise<void> {
  const { PAGE_START } = await import('@sluice/simulate')
  checkOwnFile(file, { name: 'report of sluice simulate', start: PAGE_START }, inputs)
}
