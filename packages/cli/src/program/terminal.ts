import { escapeControls } from '@sluice/core/internal'
import type { Output } from './environment.js'

/** An output on which printed text never controls a terminal: names, identities and reasons may come from clients. */
export class Terminal implements Output {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  get isTTY(): boolean {
    return this.#output.isTTY === true
  }

  get columns(): number | undefined {
    return this.#output.columns
  }

  write(text: string): void {
    this.#output.write(escapeControls(text))
  }

  /** Prints the program's own control sequences unchanged: colours, moves of the cursor. */
  steer(text: string): void {
    this.#output.write(text)
  }
}
