import { lstat, writeFile } from 'node:fs/promises'
import { cannotWrite } from '@sluice/core/internal'

/**
 * Checks that a file does not exist: a document that someone has changed is not replaced.
 *
 * @throws Error with one sentence for the user
 */
export async function checkWritable(file: string): Promise<void> {
  const found = await lstat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw cannotWrite(file, error)
  })
  if (found) throw new Error(`cannot write ${JSON.stringify(file)}: it exists; name another file`)
}

/** @throws Error with one sentence for the user, where it cannot be written or exists by now */
export async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    throw cannotWrite(file, error)
  }
}
