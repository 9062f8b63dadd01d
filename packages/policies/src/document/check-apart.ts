import { Worker } from 'node:worker_threads'
import { type CheckedText, checkText, type TextToCheck } from './check-text.js'
import { compareTexts, type TextsToCompare } from './differences.js'
import { MAX_TEXT } from './lexemes.js'
import { WORKER } from './worker.generated.js'

/** Characters that are read in this thread: to start another one takes longer. */
const MAX_HERE = 16_384

/** As `checkText`; long documents are read in a thread of their own. */
export async function checkApart(document: TextToCheck): Promise<CheckedText> {
  const { length } = document.text
  // A document that is refused for its length is not read.
  return length <= MAX_HERE || length > MAX_TEXT ? checkText(document) : inThread(document)
}

/** As `compareTexts`; long documents are compared in a thread of their own. */
export async function compareApart(given: TextsToCompare): Promise<ReturnType<typeof compareTexts>> {
  return areShort(given.texts) ? compareTexts(given) : inThread(given)
}

/** Whether texts may be read in this thread. */
export function areShort(texts: readonly string[]): boolean {
  return texts.reduce((sum, { length }) => sum + length, 0) <= MAX_HERE
}

function inThread<Result>(workerData: TextToCheck | TextsToCompare): Promise<Result> {
  // As text, so that no bundler has to find another file. Without the process's own flags, which may load whole programs.
  const worker = new Worker(WORKER, { eval: true, workerData, execArgv: [], name: 'sluice policies' })
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread that read it has ended')))
  })
}
