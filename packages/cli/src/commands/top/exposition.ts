/** One line of a scrape of Prometheus: a name, its labels, a number. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** `name{labels} value`; a time after it, and exemplars, are ignored. */
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+([+-]?(?:Inf|NaN|[\d.]+(?:[eE][+-]?\d+)?))(?=\s|$)/s
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' }

/** The samples whose names begin like this, in the text format of Prometheus or in OpenMetrics. Other lines are skipped. */
export function samplesOf(text: string, start: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    if (!line.startsWith(start)) continue
    const [, name, labels = '', value = ''] = LINE.exec(line) ?? []
    if (name !== undefined) samples.push({ name, labels: labelsOf(labels), value: numberOf(value) })
  }
  return samples
}

function labelsOf(text: string): Record<string, string> {
  // Names come from a server, and may be `__proto__`.
  const labels: Record<string, string> = Object.create(null)
  for (const [, label = '', value = ''] of text.matchAll(LABEL)) {
    labels[label] = value.replace(/\\[n"\\]/g, (pair) => ESCAPES[pair] as string)
  }
  return labels
}

function numberOf(text: string): number {
  if (!text.endsWith('Inf')) return Number(text)
  return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
