import { useEffect, useRef } from 'preact/hooks'
import type { ShownDocument } from '../../src/shown-document.js'
import { whole } from './format.js'

interface YamlProps {
  readonly shown: ShownDocument
  /** The line to which a link led. */
  readonly marked: number | undefined
}

/** The policies of a document as numbered lines. */
export function Yaml({ shown: { text, left }, marked }: YamlProps) {
  const all = useRef<HTMLDetailsElement>(null)
  const line = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    if (!all.current || marked === undefined) return
    all.current.open = true
    line.current?.scrollIntoView({ block: 'center' })
    line.current?.focus({ preventScroll: true })
  }, [marked])
  return (
    <details ref={all}>
      <summary>As YAML</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by keys */}
      <pre class="yaml" tabIndex={0}>
        {text
          .trimEnd()
          .split('\n')
          .map((each, i) => (
            <span
              key={i}
              {...(i + 1 === marked ? { class: 'line marked', ref: line, tabIndex: -1 } : { class: 'line' })}
            >
              {`${each}\n`}
            </span>
          ))}
      </pre>
      <p class="muted below">
        Clients, values of headers, overrides and comments are not shown.
        {left > 0 && ` ${left === 1 ? 'One further policy is' : `${whole(left)} further policies are`} left out.`}
      </p>
    </details>
  )
}
