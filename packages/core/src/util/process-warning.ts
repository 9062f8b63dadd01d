import { escapeControls } from './escape.js'

/** Where each code is explained. One constant: a page of the documentation once that has an address. */
const EXPLAINED_IN = 'dist/ERRORS.md'

/** Emits the warning as one of the process, without an event. Node prints it on a terminal, and it may quote a client. */
export function processWarning(code: string, message: string): void {
  process.emitWarning(escapeControls(message), {
    type: 'SluiceWarning',
    code,
    detail: `See ${EXPLAINED_IN}#${code.toLowerCase()} of your @sluice package`,
  })
}
