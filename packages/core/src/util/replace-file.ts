import { randomBytes } from 'node:crypto'
import { rename, unlink, writeFile } from 'node:fs/promises'

/**
 * Writes a file for its owner alone, beside it first, then replaces it at once: whoever reads it finds the earlier file or the
 * whole new one. Nothing is written through a link. A process that is killed meanwhile leaves `FILE.PID.….tmp`.
 *
 * @param options.signal aborts the writing, and leaves the earlier file
 * @throws the error of the file system, or that of the signal
 */
export async function replaceFile(
  file: string,
  content: string | AsyncIterable<string>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const beside = `${file}.${process.pid}.${randomBytes(8).toString('hex')}.tmp`
  try {
    // An existing file or link of that name is foreign: writing through it would overwrite its target.
    await writeFile(beside, content, { flag: 'wx', mode: 0o600, flush: true, ...options })
    await rename(beside, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await unlink(beside).catch(() => {})
    throw error
  }
}
