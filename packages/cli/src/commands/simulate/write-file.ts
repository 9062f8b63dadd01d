import { lstat, open, stat } from 'node:fs/promises'
import { replaceFile } from '@sluice/core/internal'

/** Reasons for people, by the codes of the file system. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EDQUOT: 'the quota of this user is used up',
  EFBIG: 'it is larger than this user may write',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'the folder does not exist',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is no folder',
  EPERM: 'this user may not replace it',
  EROFS: 'the file system is read-only',
}

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
 * Checks that a report may be written: to a new file, or in place of an earlier report that is none of the inputs, by whatever
 * name. `--html access.log*` would replace a log. A rename onto a link or onto `/dev/null` would remove that.
 *
 * @throws Error with one sentence for the user
 */
export async function checkReportFile(file: string, inputs: readonly string[]): Promise<void> {
  const found = await lstat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    // Whether it can be written is seen then.
    if (error.code === 'ENOENT') return undefined
    throw cannotWrite(file, error)
  })
  if (!found) return
  if (!found.isFile()) {
    const kind = found.isDirectory() ? 'a folder' : found.isSymbolicLink() ? 'a symbolic link' : 'no regular file'
    throw notReplaced(file, `it is ${kind}`)
  }
  for (const input of inputs) {
    const read = await stat(input, { bigint: true }).catch(() => undefined)
    if (read?.dev === found.dev && read.ino === found.ino) {
      throw notReplaced(file, `it is the same file as ${JSON.stringify(input)}, which is read`)
    }
  }
  if (!(await isReport(file))) throw notReplaced(file, 'it exists, and is no report of sluice simulate')
}

/** Whether a file begins as reports do. One that cannot be read does not. */
async function isReport(file: string): Promise<boolean> {
  const { PAGE_START } = await import('@sluice/simulate')
  const start = Buffer.from(PAGE_START)
  try {
    const handle = await open(file)
    try {
      const { buffer } = await handle.read(Buffer.alloc(start.length))
      return buffer.equals(start)
    } finally {
      await handle.close()
    }
  } catch {
    return false
  }
}

function notReplaced(file: string, why: string): Error {
  return new Error(`cannot write ${JSON.stringify(file)}: ${why}; name another file`)
}

export function cannotWrite(file: string, error: unknown): Error {
  const { code = 'no code', message } = error as NodeJS.ErrnoException
  return new Error(`cannot write ${JSON.stringify(file)}: ${REASONS[code] ?? message} (${code})`, { cause: error })
}
