// Runs in a thread of its own, as the text in worker.generated.ts: `npm run generate` after a change of this file or of what
// it imports.
import { parentPort, workerData } from 'node:worker_threads'
import { checkText, type TextToCheck } from './check-text.js'
import { compareTexts, type TextsToCompare } from './differences.js'

const given = workerData as TextToCheck | TextsToCompare
parentPort?.postMessage('texts' in given ? compareTexts(given) : checkText(given))
