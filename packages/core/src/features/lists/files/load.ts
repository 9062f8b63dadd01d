import type { ListData } from '../list-data.js'
import type { ListFormat } from './formats.js'
import { WORKER } from './worker.generated.js'

export interface LoadRequest {
  readonly path: string
  readonly format: ListFormat
}

export type LoadResult =
  | { readonly kind: 'loaded'; readonly stamp: string; readonly data: ListData }
  | { readonly kind: 'faulty'; readonly stamp: string; readonly line: number | undefined; readonly message: string }
  /** It was written while it was read. */
  | { readonly kind: 'changing' }

/** A file that is being read, in a thread that does not keep the process alive. */
export interface Loading {
  readonly result: Promise<LoadResult>
  stop(): void
}

/** Reads and parses a file in a thread of its own. It rejects where the file cannot be read. */
export function load(request: LoadRequest): Loading {
  // Not imported: most processes have no list in a file, and all would load it.
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  // As text, so that no bundler has to find another file. Without the process's own flags, which may load whole programs.
  const worker = new Worker(WORKER, { eval: true, workerData: request, execArgv: [], name: 'sluice list' })
  worker.unref()
  const result = new Promise<LoadResult>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread that read it has ended')))
  })
  return { result, stop: () => void worker.terminate() }
}
