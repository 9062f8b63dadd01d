import { closeSync, lstatSync, openSync, readSync, statSync } from 'node:fs'

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

/** The kind of a file that this program writes. */
export interface OwnFile {
  /** Its name in messages, such as `report of sluice simulate`. */
  readonly name: string
  /** The text that each file of the kind begins with. */
  readonly start: string
  /** Whether an empty file is one: a crash may have left it. */
  readonly mayBeEmpty?: boolean
}

/**
 * Checks that a file may be written: a new one, or in place of an earlier one of its kind that is none of the inputs, by whatever
 * name. `--html access.log*` would replace a log. A rename onto a link or onto `/dev/null` would remove that.
 *
 * @param inputs the files that are read for it
 * @returns whether there is an earlier one
 * @throws Error with one sentence for the user
 */
export function checkOwnFile(file: string, kind: OwnFile, inputs: readonly string[] = []): boolean {
  const found = known(file, () => lstatSync(file, { bigint: true, throwIfNoEntry: false }))
  // Whether it can be written is seen then.
  if (!found) return false
  if (!found.isFile()) {
    const other = found.isDirectory() ? 'a folder' : found.isSymbolicLink() ? 'a symbolic link' : 'no regular file'
    throw notReplaced(file, `it is ${other}`)
  }
  for (const input of inputs) {
    const read = ifThere(() => statSync(input, { bigint: true }))
    if (read?.dev === found.dev && read.ino === found.ino) {
      throw notReplaced(file, `it is the same file as ${JSON.stringify(input)}, which is read`)
    }
  }
  if (kind.mayBeEmpty && found.size === 0n) return true
  if (!ifThere(() => beginsWith(file, kind.start))) throw notReplaced(file, `it exists, and is no ${kind.name}`)
  return true
}

/** The error of the file system as one sentence for the user. */
export function cannotWrite(file: string, error: unknown): Error {
  const { code = 'no code', message } = error as NodeJS.ErrnoException
  return new Error(`cannot write ${JSON.stringify(file)}: ${REASONS[code] ?? message} (${code})`, { cause: error })
}

function notReplaced(file: string, why: string): Error {
  return new Error(`cannot write ${JSON.stringify(file)}: ${why}; name another file`)
}

function beginsWith(file: string, start: string): boolean {
  const expected = Buffer.from(start)
  const descriptor = openSync(file, 'r')
  try {
    const found = Buffer.alloc(expected.length)
    readSync(descriptor, found)
    return found.equals(expected)
  } finally {
    closeSync(descriptor)
  }
}

function known<Value>(file: string, look: () => Value): Value {
  try {
    return look()
  } catch (error) {
    throw cannotWrite(file, error)
  }
}

function ifThere<Value>(look: () => Value): Value | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}
