import { lstat } from 'node:fs/promises'
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
 * Writes a report that only its owner can read (0600), whole or not at all. An existing file is replaced. A link or a device is
 * an error, so that no other file is written by it. A signal removes the half-written file, then ends the process.
 *
 * @throws Error with one sentence for the user, where the file cannot be written; the earlier file stays
 */
export async function writeReport(file: string, text: string): Promise<void> {
  await refuseOther(file)
  const interruption = new AbortController()
  const interrupt = (signal: NodeJS.Signals) => interruption.abort(signal)
  for (const signal of SIGNALS) process.on(signal, interrupt)
  try {
    await replaceFile(file, text, { signal: interruption.signal })
  } catch (error) {
    if (!interruption.signal.aborted) throw cannotWrite(file, error)
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, interrupt)
  }
  if (interruption.signal.aborted) process.kill(process.pid, interruption.signal.reason)
}

/** Refuses to replace anything but a file: a rename onto `/dev/null` would remove the device. */
async function refuseOther(file: string): Promise<void> {
  const found = await lstat(file).catch((error: NodeJS.ErrnoException) => {
    // Whether it can be written is seen then.
    if (error.code === 'ENOENT') return undefined
    throw cannotWrite(file, error)
  })
  if (!found || found.isFile()) return
  const kind = found.isDirectory() ? 'a folder' : found.isSymbolicLink() ? 'a symbolic link' : 'no regular file'
  throw new Error(`cannot write ${JSON.stringify(file)}: it is ${kind}; name a file`)
}

function cannotWrite(file: string, error: unknown): Error {
  const { code = 'no code', message } = error as NodeJS.ErrnoException
  return new Error(`cannot write ${JSON.stringify(file)}: ${REASONS[code] ?? message} (${code})`, { cause: error })
}
