/** Longer bodies and events are not read, as parsing them would take long. In bytes, and in characters. */
const MAX_SIZE = 1_048_576

/** Takes the bytes of a response. */
export interface Documents {
  add(bytes: Uint8Array): void
  /** The response is whole. */
  end(): void
}

/** The JSON documents of a response, as they pass: its body, or the data of each event of a stream. */
export function documentsOf(contentType: string, onDocument: (document: unknown) => void): Documents | undefined {
  if (/^text\/event-stream\b/i.test(contentType)) return new Events(onDocument)
  return /^application\/(?:[^;]*\+)?json\b/i.test(contentType) ? new Body(onDocument) : undefined
}

function parse(text: string, onDocument: (document: unknown) => void): void {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    // Such as `[DONE]`, the last event of OpenAI.
    return
  }
  onDocument(document)
}

class Body implements Documents {
  readonly #onDocument: (document: unknown) => void
  readonly #decoder = new TextDecoder()
  #text = ''
  #size = 0

  constructor(onDocument: (document: unknown) => void) {
    this.#onDocument = onDocument
  }

  add(bytes: Uint8Array): void {
    this.#size += bytes.byteLength
    this.#text = this.#size > MAX_SIZE ? '' : this.#text + this.#decoder.decode(bytes, { stream: true })
  }

  end(): void {
    if (this.#size <= MAX_SIZE) parse(this.#text, this.#onDocument)
  }
}

/** @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation */
class Events implements Documents {
  readonly #onDocument: (document: unknown) => void
  readonly #decoder = new TextDecoder()
  #endsWithCr = false
  /** The line that has begun, and its length, also if it is too long to be kept. */
  #line = ''
  #lineLength = 0
  /** The data of the event that has begun. */
  #data: string[] = []
  #size = 0

  constructor(onDocument: (document: unknown) => void) {
    this.#onDocument = onDocument
  }

  add(bytes: Uint8Array): void {
    const decoded = this.#decoder.decode(bytes, { stream: true })
    if (decoded === '') return
    // The end of a line may be in two chunks.
    const text = this.#endsWithCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded
    this.#endsWithCr = decoded.endsWith('\r')
    for (const [i, part] of text.split(/\r\n|\n|\r/).entries()) {
      if (i > 0) this.#endLine()
      this.#lineLength += part.length
      this.#size += part.length
      if (this.#size <= MAX_SIZE) this.#line += part
    }
  }

  end(): void {
    this.#endLine()
    this.#endEvent()
  }

  #endLine(): void {
    if (this.#lineLength === 0) this.#endEvent()
    else if (this.#line.startsWith('data:')) this.#data.push(this.#line.slice('data:'.length))
    this.#line = ''
    this.#lineLength = 0
  }

  #endEvent(): void {
    if (this.#size <= MAX_SIZE && this.#data.length > 0) parse(this.#data.join('\n'), this.#onDocument)
    this.#data = []
    this.#size = 0
  }
}
