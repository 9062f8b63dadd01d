/** A limit of a document for each kernel, by its algorithm, with windows so long that nothing refills during a test. */
export const LASTING_LIMITS: Readonly<Record<string, object>> = {
  slidingLog: { window: '30d' },
  fixedWindow: { algorithm: 'fixedWindow', window: '30d', anchor: 'first-request' },
  slidingWindow: { algorithm: 'slidingWindow', window: '30d', edge: 'strict' },
  gcra: { algorithm: 'gcra', window: '30d' },
  concurrency: { algorithm: 'concurrency', ttl: '30d' },
}
